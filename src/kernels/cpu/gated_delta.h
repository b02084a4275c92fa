// gated_delta.h (cpu) - the gated delta rule, heads of sequences split over threads.
#pragma once

#include "kernels/cpu/delta_job.h"
#include "kernels/cpu/state_batch.h"

namespace octavo::cpu {

// job: without decay and beta, whose memory is the kernel's own.
void gated_delta(const StateBatch& batch, DeltaJob job);

}  // namespace octavo::cpu
