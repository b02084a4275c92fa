#include "scheduler/step_costs.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(StepCosts, StartsWithoutMeasurements) {
  const StepCosts costs;
  EXPECT_EQ(costs.seconds(4), 0);
  EXPECT_EQ(costs.gap(), 0);
}

TEST(StepCosts, InterpolatesBetweenSizes) {
  StepCosts costs;
  costs.observe_step(2, 0.010);
  costs.observe_step(6, 0.018);
  EXPECT_DOUBLE_EQ(costs.seconds(1), 0.010);
  EXPECT_DOUBLE_EQ(costs.seconds(4), 0.014);
  EXPECT_DOUBLE_EQ(costs.seconds(6), 0.018);
  EXPECT_DOUBLE_EQ(costs.seconds(500), 0.018);
}

TEST(StepCosts, OneSlowStepIsForgotten) {
  StepCosts costs;
  costs.observe_step(1, 1.0);
  costs.observe_gap(1.0);
  for (int i = 0; i < 20; ++i) {
    costs.observe_step(1, 0.01);
    costs.observe_gap(0.001);
  }
  EXPECT_NEAR(costs.seconds(1), 0.01, 0.001);
  EXPECT_NEAR(costs.gap(), 0.001, 0.0001);
}

}  // namespace
}  // namespace octavo
