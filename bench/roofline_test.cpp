#include "bench/roofline.h"

#include <gtest/gtest.h>

namespace octavo::bench {
namespace {

constexpr Limit kRoof = {.bytes = 20e9, .flops = 3000e9};

TEST(Roofline, TheLongerOfMemoryAndArithmeticIsTheLimit) {
  const Work one_row = {.bytes = 6e6, .flops = 6e6};
  EXPECT_DOUBLE_EQ(limit_seconds(one_row, kRoof), 0.3e-3);
  EXPECT_TRUE(memory_bound(one_row, kRoof));
  const Work many_rows = {.bytes = 6e6, .flops = 3e9};
  EXPECT_DOUBLE_EQ(limit_seconds(many_rows, kRoof), 1e-3);
  EXPECT_FALSE(memory_bound(many_rows, kRoof));
}

TEST(Roofline, FractionsAreOneAtTheLimitAndHalfAtTwiceItsTime) {
  const Work work = {.bytes = 20e6, .flops = 300e6};  // 1 ms of memory, 0.1 ms of arithmetic
  const Fractions at_limit = fractions_of(work, kRoof, 1e-3);
  EXPECT_DOUBLE_EQ(at_limit.limit, 1);
  EXPECT_DOUBLE_EQ(at_limit.bandwidth, 1);
  EXPECT_DOUBLE_EQ(at_limit.peak, 0.1);
  EXPECT_DOUBLE_EQ(fractions_of(work, kRoof, 2e-3).limit, 0.5);
}

TEST(Roofline, AnUnknownLimitIsIgnored) {
  const Work work = {.bytes = 20e6, .flops = 300e6};
  const Fractions fractions = fractions_of(work, {.bytes = 20e9, .flops = 0}, 1e-3);
  EXPECT_DOUBLE_EQ(fractions.limit, 1);
  EXPECT_DOUBLE_EQ(fractions.peak, 0);
}

TEST(Roofline, BetweenIsTheMeanOfBoth) {
  const Limit mean = between({.bytes = 10, .flops = 100}, {.bytes = 20, .flops = 300});
  EXPECT_DOUBLE_EQ(mean.bytes, 15);
  EXPECT_DOUBLE_EQ(mean.flops, 200);
}

TEST(Roofline, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(median({3, 1, 100}), 3);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 100}), 3);
  EXPECT_DOUBLE_EQ(median({7}), 7);
}

TEST(Roofline, PercentilesLieBetweenTheirNeighbours) {
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 75), 2.5);
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 100), 3);
  EXPECT_DOUBLE_EQ(percentile({7}, 99), 7);
}

}  // namespace
}  // namespace octavo::bench
