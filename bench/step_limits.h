// step_limits.h - what this machine can do for a model's steps right now. No MLX.
#pragma once

#include "bench/step_cost.h"

namespace octavo::bench {

// Read bandwidth and matrix peak of all threads, the best of three passes each, for models that
// compute in `dtype`. Takes about a second and 1 GiB.
StepLimits measure_step_limits(DType dtype);

// The machine's speed wanders; what held during a measurement is the mean of before and after.
StepLimits between(const StepLimits& before, const StepLimits& after);

}  // namespace octavo::bench
