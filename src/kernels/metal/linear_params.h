// linear_params.h - shared by linear.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kKParts = 4;      // simdgroups per threadgroup; they divide the inputs
METAL_CONSTANT int kMostJoined = 4;  // layers per launch
METAL_CONSTANT int kDenseRows = 64;  // rows and outputs per threadgroup of dense_matrix

// kGate
METAL_CONSTANT int kNoGate = 0;
METAL_CONSTANT int kGateAndUp = 1;  // layer 0 is the gate, layer 1 is up; strips of both per group
METAL_CONSTANT int kUpGiven = 2;    // the product of up is an input

struct JoinedLayer {
  int32_t first_group;  // of its strips, in the grid: group_strips each
  int32_t outputs;
  int32_t out_first;  // column of its first output
  int32_t has_bias;
};

struct LinearParams {
  int32_t rows;
  int32_t cols;
  int32_t padded_cols;
  int32_t strip_bytes;
  int32_t x_stride;         // elements from one row of x to the next
  int32_t strips_per_head;  // strips that read the same columns of x
  int32_t x_head_stride;    // columns of x from one head to the next
  int32_t out_head_gap;     // columns of out between two heads
  int32_t out_stride;
  int32_t part_count;
  int32_t group_strips;  // strips of a layer per threadgroup
  float scale;
  float soft_cap;
  JoinedLayer parts[kMostJoined];
  // Used only with LoRA adapters.
  int32_t lora_stride;               // floats from one row of their sums to the next
  int32_t lora_firsts[kMostJoined];  // by layer, up included: its first column in them, or -1
};

// The tile table starts with the number of tiles. Each entry covers `rows` rows of one expert,
// starting at row `first`.
METAL_CONSTANT int kTileWords = 3;  // expert, first, rows

}  // namespace metal
}  // namespace octavo
