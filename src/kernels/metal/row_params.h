// row_params.h - shared by the kernels that treat each element of a row on its own and their host
// code. No MLX.
//
// A threadgroup takes a tile of kRowColumns columns of one row; a thread takes columns a
// threadgroup apart, so that lanes read neighbours whatever the row's alignment.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kTileThreads = 128;
METAL_CONSTANT int kRowColumns = 512;

struct GatedActivationParams {
  int32_t cols;
  int32_t up_first;   // column of up that meets column 0
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
  float eps;  // of the norm, if there is one
};

METAL_CONSTANT int kRopeThreads = 64;
METAL_CONSTANT int kRopeHeads = 4;  // of a thread: they share a cosine and a sine

struct RopeParams {
  int32_t heads;
  int32_t dim;
  int32_t pairs;
  float magnitude;
};

}  // namespace metal
}  // namespace octavo
