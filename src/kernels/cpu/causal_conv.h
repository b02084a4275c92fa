// causal_conv.h (cpu) - the causal convolution, units of sequences split over threads.
#pragma once

#include "kernels/cpu/conv_job.h"
#include "kernels/cpu/state_batch.h"

namespace octavo::cpu {

void causal_conv(const StateBatch& batch, const ConvJob& job);

}  // namespace octavo::cpu
