// row_params.h - shared by the element-wise row kernels and their host code. No MLX.
//
// A threadgroup processes a tile of kRowColumns columns of one row. A thread's columns are a
// threadgroup apart, so that adjacent lanes read adjacent elements regardless of alignment.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kTileThreads = 128;
METAL_CONSTANT int kRowColumns = 512;

struct GatedActivationParams {
  int32_t cols;
  int32_t up_first;   // column of up that belongs to column 0
  int32_t up_stride;  // elements from one row of up to the next
};

struct GateRowsParams {
  int32_t cols;
  int32_t x_first;
  int32_t x_stride;
  int32_t gate_first;
  int32_t gate_stride;
};

struct AddRowsParams {
  int32_t cols;
  float scale;
  float out_scale;
  float eps;  // add_normed_rows only
};

METAL_CONSTANT int kRopeThreads = 64;
METAL_CONSTANT int kRopeHeads = 4;  // per thread: they share the cosine and the sine

struct RopeParams {
  int32_t heads;
  int32_t dim;
  int32_t pairs;
  float magnitude;
};

}  // namespace metal
}  // namespace octavo
