// linear_params.h - shared by linear.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kKParts = 4;  // simdgroups of a threadgroup, each with its share of the inputs
METAL_CONSTANT int kMostJoined = 4;  // layers of a launch

// kGate
METAL_CONSTANT int kNoGate = 0;
METAL_CONSTANT int kGateAndUp = 1;  // layer 0 is the gate, layer 1 its partner; of two strips
METAL_CONSTANT int kUpGiven = 2;    // the partner's product stands in memory

struct JoinedLayer {
  int32_t first_group;  // of strips, in the grid
  int32_t outputs;
  int32_t out_first;  // column of its first output
  int32_t has_bias;
};

struct LinearParams {
  int32_t rows;
  int32_t cols;
  int32_t padded_cols;
  int32_t strip_bytes;
  int32_t scale_bytes;
  int32_t x_stride;         // elements from one row of x to the next
  int32_t strips_per_head;  // strips that read the same columns of x...
  int32_t x_head_stride;    // ...from which the next ones' are this far
  int32_t out_head_gap;     // columns of out between one head's and the next one's
  int32_t out_stride;
  int32_t part_count;
  float scale;
  float soft_cap;
  JoinedLayer parts[kMostJoined];
};

// An entry of the table of tiles of rows: of one expert, `rows` rows from `first` on. The table's
// first word counts them.
METAL_CONSTANT int kTileWords = 3;  // expert, first, rows

}  // namespace metal
}  // namespace octavo
