#include "api/sampling_defaults.h"

#include <gtest/gtest.h>

namespace octavo::api {
namespace {

TEST(SamplingDefaults, AreDescribedForTheSummary) {
  EXPECT_EQ(kOctavoSampling.describe(), "temperature 0.7, top_p 0.95, min_p 0.05");
  EXPECT_EQ(SamplingDefaults{}.describe(), "temperature 1");
  SamplingDefaults other;
  other.temperature = 0.6F;
  other.top_k = 20;
  EXPECT_EQ(other.describe(), "temperature 0.6, top_k 20");
  EXPECT_TRUE(SamplingDefaults{}.empty());
  EXPECT_FALSE(other.empty());
}

}  // namespace
}  // namespace octavo::api
