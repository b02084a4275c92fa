#include "bench/load/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace octavo::bench {
namespace {

TEST(PoissonArrivals, DependOnlyOnTheSeed) {
  EXPECT_EQ(poisson_arrivals(50, 10, 7), poisson_arrivals(50, 10, 7));
  EXPECT_NE(poisson_arrivals(50, 10, 7), poisson_arrivals(50, 10, 8));
}

TEST(PoissonArrivals, KeepTheMeanRateExactly) {
  const auto times = poisson_arrivals(100, 8, 3);
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_GT(times.front(), 0);
  EXPECT_DOUBLE_EQ(times.back(), 100 / 8.0);
}

TEST(PoissonArrivals, HaveExponentialGaps) {
  constexpr size_t kCount = 20000;
  const auto times = poisson_arrivals(kCount, 1, 1);
  double squares = 0;
  size_t short_gaps = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double gap = times[i] - (i == 0 ? 0 : times[i - 1]);
    squares += gap * gap;
    short_gaps += gap < std::log(2.0) ? 1 : 0;  // the median of an exponential of mean 1
  }
  EXPECT_NEAR(squares / kCount, 2, 0.1);
  EXPECT_NEAR(static_cast<double>(short_gaps) / kCount, 0.5, 0.02);
}

TEST(PoissonArrivals, AtAnInfiniteRateArriveAtOnce) {
  const auto times = poisson_arrivals(3, std::numeric_limits<double>::infinity(), 0);
  EXPECT_EQ(times, (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace octavo::bench
