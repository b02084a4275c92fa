// kernel_time.h - how long our CPU kernels have run. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Time this process has spent in our kernels' tasks; a task counts once, regardless of its number
// of threads. The rest of a step's time is MLX's own operations, queueing and waiting. Any thread.
int64_t kernel_nanoseconds();

}  // namespace octavo
