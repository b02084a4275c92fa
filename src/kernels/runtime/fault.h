// fault.h - handles exceptions of kernels; also a kernel that throws, for tests.
#pragma once

#include <vector>

#include "kernels/runtime/mlx.h"

namespace octavo {

// The streams of the calling thread's kernels: the device's, and the CPU's if that is another one,
// for operations that the device does not support (sampling with rules, logprobs).
std::vector<mx::Stream> kernel_streams();

// Rethrows the exception that a kernel has thrown since the last call, if any. Does not wait: call
// it after the results to be checked have been computed.
void check_kernels(const std::vector<mx::Stream>& streams = kernel_streams());
// Waits until all queued work has run and discards its exceptions.
void wait_for_kernels(const std::vector<mx::Stream>& streams = kernel_streams()) noexcept;

// Returns x, computed by a kernel that throws when it runs. For tests.
mx::array fail_when_run(const mx::array& x);

}  // namespace octavo
