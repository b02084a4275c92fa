// fault.h - what happens when a kernel throws, and a kernel that does.
#pragma once

#include "kernels/mlx.h"

namespace octavo {

// Throws what a kernel of the calling thread's stream has thrown since the last call, if any.
void check_kernels();
// Waits until all that is queued on the calling thread's stream has run, and forgets what it threw.
void wait_for_kernels() noexcept;

// x, by a kernel that throws when it runs. For tests of what follows.
mx::array fail_when_run(const mx::array& x);

}  // namespace octavo
