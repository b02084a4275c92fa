#include "server/accept_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::server {
namespace {

using namespace std::chrono_literals;

TEST(AcceptFailures, WaitsLongerAndLogsEveryTenSeconds) {
  AcceptFailures failures;
  auto now = AcceptFailures::Clock::now();
  const auto first = failures.failed("Too many open files", now);
  EXPECT_EQ(first.wait, 50ms);
  EXPECT_THAT(first.line, testing::HasSubstr("Too many open files (1 failed attempts"));
  EXPECT_THAT(first.line, testing::HasSubstr("ulimit -n"));
  int lines = 0;
  int attempts = 0;
  AcceptFailures::Advice last;
  for (const auto end = now + 30s; now < end; now += last.wait, ++attempts) {
    last = failures.failed("Too many open files", now);
    lines += last.line.empty() ? 0 : 1;
  }
  EXPECT_EQ(last.wait, 500ms);
  EXPECT_EQ(lines, 2);
  EXPECT_LT(attempts, 70);
  failures.succeeded();
  const auto later = failures.failed("Too many open files", now + 10s);
  EXPECT_EQ(later.wait, 50ms);
  EXPECT_FALSE(later.line.empty());
}

}  // namespace
}  // namespace octavo::server
