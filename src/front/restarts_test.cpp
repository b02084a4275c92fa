#include "front/restarts.h"

#include <gtest/gtest.h>

namespace octavo::front {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Restarts, TheFirstStartIsImmediateAndFurtherOnesWaitLonger) {
  Restarts restarts;
  Restarts::Time now{seconds(1000)};
  EXPECT_LE(restarts.start_at(), now);
  restarts.died(now);
  EXPECT_EQ(restarts.start_at(), now);
  for (const int wait : {500, 1000, 2000, 4000}) {
    now += seconds(1);
    restarts.died(now);
    EXPECT_EQ(restarts.start_at(), now + milliseconds(wait));
  }
  for (int i = 0; i < 100; ++i) restarts.died(now);
  EXPECT_LE(restarts.start_at(), now + seconds(60));
}

TEST(Restarts, RequestsRunOneAtATimeAfterASecondDeathWithinAMinute) {
  Restarts restarts;
  Restarts::Time now{seconds(1000)};
  restarts.died(now);
  EXPECT_FALSE(restarts.one_at_a_time(now));
  now += seconds(61);
  restarts.died(now);
  EXPECT_FALSE(restarts.one_at_a_time(now));
  now += seconds(30);
  restarts.died(now);
  EXPECT_TRUE(restarts.one_at_a_time(now));
  now += seconds(100);  // its restart took long
  EXPECT_TRUE(restarts.one_at_a_time(now));
  restarts.loaded(now);
  EXPECT_TRUE(restarts.one_at_a_time(now + seconds(59)));
  EXPECT_FALSE(restarts.one_at_a_time(now + seconds(60)));
}

}  // namespace
}  // namespace octavo::front
