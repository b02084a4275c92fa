#include "bench/filter.h"

#include <gtest/gtest.h>

namespace octavo::bench {
namespace {

TEST(Filter, EmptyMatchesEverything) {
  EXPECT_TRUE(matches_filter("linear 1024x3072 M=16 bfloat16", ""));
  EXPECT_TRUE(matches_filter("linear 1024x3072 M=16 bfloat16", "  "));
}

TEST(Filter, EveryWordMustOccurInAnyOrder) {
  const char* label = "linear 1024x3072 M=16 affine 4-bit/64";
  EXPECT_TRUE(matches_filter(label, "linear"));
  EXPECT_TRUE(matches_filter(label, "4-bit linear"));
  EXPECT_TRUE(matches_filter(label, "1024x3072 M=16"));
  EXPECT_FALSE(matches_filter(label, "linear bfloat16"));
}

TEST(Filter, ANumberIsMatchedWhole) {
  EXPECT_FALSE(matches_filter("linear 1024x3072 M=16 float32", "M=1"));
  EXPECT_TRUE(matches_filter("linear 1024x3072 M=1 float32", "M=1"));
  EXPECT_FALSE(matches_filter("linear 1024x3072 M=16 float32", "24x3072"));
  EXPECT_TRUE(matches_filter("rows=11 M=1", "M=1"));
}

}  // namespace
}  // namespace octavo::bench
