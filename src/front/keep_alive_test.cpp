#include "front/keep_alive.h"

#include <gtest/gtest.h>

namespace octavo::front {
namespace {

using std::chrono::milliseconds;

milliseconds time_of(std::string_view text) {
  const auto parsed = parse_keep_alive(text);
  return parsed && parsed->time ? *parsed->time : milliseconds(-1);
}

TEST(KeepAlive, ReadsSecondsAndDurations) {
  EXPECT_EQ(time_of("300"), milliseconds(300'000));
  EXPECT_EQ(time_of("0"), milliseconds(0));
  EXPECT_EQ(time_of("0.5"), milliseconds(500));
  EXPECT_EQ(time_of("5m"), milliseconds(300'000));
  EXPECT_EQ(time_of("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(time_of("500ms"), milliseconds(500));
  EXPECT_EQ(time_of("1.5s"), milliseconds(1500));
}

TEST(KeepAlive, NegativeAndVeryLongTimesMeanForEver) {
  for (const char* text : {"-1", "-1m", "-0.5s", "99999999999999999999", "900000h"}) {
    const auto parsed = parse_keep_alive(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_FALSE(parsed->time) << text;
  }
}

TEST(KeepAlive, RefusesOtherText) {
  for (const char* text :
       {"", "-", "m", "5 m", "5m3", "3 ", "1d", "nan", "inf", "1e3", "--1", "5m-1m"})
    EXPECT_FALSE(parse_keep_alive(text)) << text;
}

}  // namespace
}  // namespace octavo::front
