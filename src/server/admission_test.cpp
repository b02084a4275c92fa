#include "server/admission.h"

#include <gtest/gtest.h>

namespace octavo::server {
namespace {

using namespace std::chrono_literals;

TEST(Allowance, ALeaseReturnsItsAmountOnDestruction) {
  Allowance allowance(10);
  {
    const auto lease = allowance.try_lend(7);
    ASSERT_TRUE(lease);
    EXPECT_EQ(allowance.lent(), 7);
    EXPECT_FALSE(allowance.try_lend(4));
    EXPECT_EQ(allowance.lent(), 7);
    EXPECT_TRUE(allowance.try_lend(3));
  }
  EXPECT_EQ(allowance.lent(), 0);
}

TEST(Allowance, ALeaseGrowsUpToTheLimit) {
  Allowance allowance(10);
  auto lease = *allowance.try_lend(0);
  EXPECT_TRUE(lease.grow_to(6));
  EXPECT_TRUE(lease.grow_to(2));  // smaller: stays
  EXPECT_EQ(allowance.lent(), 6);
  EXPECT_FALSE(lease.grow_to(11));
  EXPECT_EQ(allowance.lent(), 6);
  Allowance::Lease other;
  other = std::move(lease);
  EXPECT_EQ(allowance.lent(), 6);
}

TEST(Backlog, TheWaitFollowsHowFastRequestsEnd) {
  Backlog backlog;
  EXPECT_EQ(backlog.retry_after(100), 1s);  // nothing known
  Backlog::Clock::time_point now{1h};
  for (int i = 0; i < 100; ++i) backlog.request_ended(now += 500ms);
  EXPECT_EQ(backlog.retry_after(10), 5s);
  EXPECT_EQ(backlog.retry_after(100'000), 120s);
  EXPECT_EQ(backlog.retry_after(0), 1s);
}

TEST(Backlog, IdleTimeDoesNotCountAsSlow) {
  Backlog backlog;
  Backlog::Clock::time_point now{1h};
  for (int i = 0; i < 100; ++i) backlog.request_ended(now += 100ms);
  backlog.request_ended(now + 10h);
  EXPECT_LT(backlog.retry_after(10), 15s);
}

}  // namespace
}  // namespace octavo::server
