// logprobs_params.h - shared by the kernels of logprobs and their host code. No MLX.
#pragma once

#include "kernels/metal/sampling_params.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kTopThreads = 512;    // per row
METAL_CONSTANT int kMostTopTokens = 64;  // per row: each takes a round over the row's blocks

// A row whose logprobs are requested.
struct RowTop {
  int32_t row;    // of the logits
  int32_t count;  // most likely tokens to find
};

}  // namespace metal
}  // namespace octavo
