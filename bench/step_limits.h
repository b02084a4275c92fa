// step_limits.h - measures the machine's current limits for model steps. No MLX.
#pragma once

#include "bench/step_cost.h"

namespace octavo::bench {

// Read bandwidth and matrix peak of all threads, the best of three passes each, for models that
// compute in `dtype`. Takes about a second and 1 GiB of memory.
StepLimits measure_step_limits(DType dtype);

// The machine's speed varies; the value for a measurement is the mean of before and after.
StepLimits between(const StepLimits& before, const StepLimits& after);

}  // namespace octavo::bench
