// kernel_time.h - how long our kernels have run. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Time this process has spent in our kernels' tasks on the CPU; a task counts once, regardless of its
// number of threads. The rest of a step's time is MLX's own operations, queueing and waiting. Any
// thread.
int64_t kernel_nanoseconds();

// From now on, kernel_nanoseconds() includes the GPU's time of every command buffer with one of our
// launches, between its first and last operation; MLX's operations in the same buffer count, too.
// A buffer counts shortly after it has finished. For benchmarks: it costs a handler per command
// buffer. Returns false if this platform has no GPU time.
bool measure_gpu_time();

}  // namespace octavo
