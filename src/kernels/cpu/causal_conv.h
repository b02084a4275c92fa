// causal_conv.h (cpu) - the causal convolution; threads share the sequences' units.
#pragma once

#include "kernels/cpu/conv_job.h"
#include "kernels/cpu/state_batch.h"

namespace octavo::cpu {

void causal_conv(const StateBatch& batch, const ConvJob& job);

}  // namespace octavo::cpu
