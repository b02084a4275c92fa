#include "scheduler/background_rows.h"

#include <algorithm>

namespace octavo {
namespace {

// A step with background rows may take this much longer. The goal for the 99th percentile of
// inter-token latencies is 1.3; the rest is for the steps that find the limit, and for noise.
constexpr double kMostSlowdown = 1.2;
constexpr int kStepsBetweenMeasurements = 32;
constexpr int kGoodStepsToGrow = 4;
// With a limit of 0, one step in so many has a row: less than one in a hundred.
constexpr int kStepsBetweenTries = 128;

}  // namespace

int BackgroundRows::next_limit() {
  ++limited_steps_;
  if (alone_.seconds(1) == 0 || limited_steps_ % kStepsBetweenMeasurements == 0) return 0;
  if (limit_ == 0) return limited_steps_ % kStepsBetweenTries == 1 ? 1 : 0;
  return limit_;
}

void BackgroundRows::observe(const StepShares& step, double seconds) {
  if (step.rows == 0 || step.prefills) return;
  if (step.background_rows == 0) {
    alone_.observe_step(step.rows, seconds);
    return;
  }
  if (seconds > kMostSlowdown * alone_.seconds(step.rows)) {
    // Steps in flight may have been planned before the limit was lowered.
    limit_ = std::min(limit_, step.background_rows) / 2;
    good_steps_ = 0;
  } else if (step.background_rows >= limit_ && ++good_steps_ >= kGoodStepsToGrow) {
    ++limit_;
    good_steps_ = 0;
  }
}

}  // namespace octavo
