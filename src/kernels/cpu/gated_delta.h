// gated_delta.h (cpu) - the gated delta rule; threads share the sequences' heads.
#pragma once

#include "kernels/cpu/delta_job.h"
#include "kernels/cpu/state_batch.h"

namespace octavo::cpu {

// job: decay and beta are ignored; the kernel allocates them.
void gated_delta(const StateBatch& batch, DeltaJob job);

}  // namespace octavo::cpu
