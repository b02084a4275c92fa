#include "scheduler/step_timer.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

StepTimer::Time at(int milliseconds) {
  return StepTimer::Time() + std::chrono::milliseconds(1000 + milliseconds);
}

TEST(StepTimer, AStepThatWasQueuedAheadTakesTheTimeSinceTheLastResult) {
  StepTimer timer(1);
  timer.start(3, at(0));
  timer.start(4, at(2));
  const StepTimer::Took first = timer.finish(at(10));
  EXPECT_NEAR(first.seconds, 0.010, 1e-9);
  EXPECT_EQ(first.drawing_rows, 3);
  const StepTimer::Took second = timer.finish(at(16));
  EXPECT_NEAR(second.seconds, 0.006, 1e-9);
  EXPECT_NEAR(second.since_result, 0.006, 1e-9);
  EXPECT_EQ(timer.last_result(), at(16));
  EXPECT_TRUE(timer.idle());
  timer.start(1, at(30));  // alone: the idle time before it does not count
  EXPECT_NEAR(timer.finish(at(35)).seconds, 0.005, 1e-9);
}

TEST(StepTimer, InAFullPipelineTheTimeBetweenResultsCounts) {
  StepTimer timer(2);
  timer.start(1, at(0));
  timer.start(1, at(1));
  timer.start(1, at(2));
  timer.finish(at(20));
  EXPECT_NEAR(timer.finish(at(31)).seconds, 0.011, 1e-9);
  EXPECT_NEAR(timer.finish(at(44)).seconds, 0.013, 1e-9);
}

// Its results come at any time in relation to those of other steps.
TEST(StepTimer, AStepThatLeavesStagesIdleTakesItsPartOfTheWholeTime) {
  StepTimer timer(4);
  timer.start(1, at(0));
  timer.start(1, at(15));
  EXPECT_NEAR(timer.finish(at(20)).seconds, 0.005, 1e-9);
  const StepTimer::Took second = timer.finish(at(35));
  EXPECT_NEAR(second.seconds, 0.005, 1e-9);
  EXPECT_NEAR(second.since_result, 0.015, 1e-9);
}

TEST(StepTimer, AfterADropNothingIsInFlight) {
  StepTimer timer(2);
  timer.start(1, at(0));
  timer.finish(at(5));
  timer.start(1, at(6));
  timer.drop();
  EXPECT_TRUE(timer.idle());
  EXPECT_FALSE(timer.last_result().has_value());
  timer.start(1, at(50));
  EXPECT_NEAR(timer.finish(at(60)).since_result, 0.010, 1e-9);
}

}  // namespace
}  // namespace octavo
