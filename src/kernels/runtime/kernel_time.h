// kernel_time.h - how long our CPU kernels have run. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Time this process has spent inside our kernels' tasks, each counted once however many threads
// shared it. What a step takes beyond this is MLX's own operations, queueing and waiting. Any
// thread.
int64_t kernel_nanoseconds();

}  // namespace octavo
