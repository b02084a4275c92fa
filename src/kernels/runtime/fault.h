// fault.h - what happens when a kernel throws, and a kernel that does.
#pragma once

#include <vector>

#include "kernels/runtime/mlx.h"

namespace octavo {

// Where the calling thread's kernels run: the device's stream, and the CPU's if that is another
// one, for what the device does not do (draws with rules, logprobs).
std::vector<mx::Stream> kernel_streams();

// Throws what a kernel has thrown since the last call, if any. Waits for nothing: call it when what
// is to be believed has been computed.
void check_kernels(const std::vector<mx::Stream>& streams = kernel_streams());
// Waits until all that is queued has run, and forgets what it threw.
void wait_for_kernels(const std::vector<mx::Stream>& streams = kernel_streams()) noexcept;

// x, by a kernel that throws when it runs. For tests of what follows.
mx::array fail_when_run(const mx::array& x);

}  // namespace octavo
