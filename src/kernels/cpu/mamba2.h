// mamba2.h (cpu) - Mamba-2's recurrence; threads share the sequences' heads.
#pragma once

#include "kernels/cpu/mamba_job.h"
#include "kernels/cpu/state_batch.h"

namespace octavo::cpu {

// job: decay and step are ignored; the kernel allocates them.
void mamba2(const StateBatch& batch, MambaJob job);

}  // namespace octavo::cpu
