// sampling_params.h - shared by the sampling kernels and their host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kPlaceThreads = 256;

METAL_CONSTANT int kLogitBlock = 256;      // logits per block; the maximum of each block is stored
METAL_CONSTANT int kMaximaThreads = 256;   // a simdgroup per block
METAL_CONSTANT int kSampleThreads = 512;   // per row
METAL_CONSTANT int kMostLogits = 1 << 19;  // per row: more could overflow the sum of weights

struct SampleParams {
  int32_t vocab;
  int32_t blocks;
};

// How one row is drawn. A 64-bit number is a fraction of 2^64 in two words.
struct RowDraw {
  int32_t is_drawn;   // 0: the CPU draws this row
  float temperature;  // 0: greedy
  float scale;        // log2(e) / temperature, applied to the distance from the largest logit
  float floor;        // tokens with a smaller weight are not drawn
  int32_t top_k;      // 0: all
  int32_t has_top_p;
  uint32_t top_p_high;
  uint32_t top_p_low;
  uint32_t uniform_high;
  uint32_t uniform_low;
};

}  // namespace metal
}  // namespace octavo
