#include "server/request_timeout.h"

#include <gtest/gtest.h>

namespace octavo::server {
namespace {

using DeadlineClock = std::chrono::steady_clock;

DeadlineClock::time_point deadline(const std::string& value) {
  return deadline_of({.headers = {{"X-Request-Timeout", value}}}, DeadlineClock::time_point{});
}

TEST(RequestTimeout, IsANumberOfSeconds) {
  EXPECT_EQ(deadline("30"), DeadlineClock::time_point{} + std::chrono::seconds(30));
  EXPECT_EQ(deadline("0.5"), DeadlineClock::time_point{} + std::chrono::milliseconds(500));
  EXPECT_EQ(deadline_of({}, DeadlineClock::now()), DeadlineClock::time_point::max());
  EXPECT_GT(deadline(std::string(300, '9')),
            DeadlineClock::time_point{} + std::chrono::hours(24 * 365));
}

TEST(RequestTimeout, RefusesOtherValues) {
  for (const char* value :
       {"0", "0.0", "-1", "abc", "1s", "1e3", "nan", "inf", "1 2", ".", "1.2.3"})
    EXPECT_THROW(deadline(value), RequestError) << value;
}

}  // namespace
}  // namespace octavo::server
