// lora_params.h - shared by lora_expand.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/linear_params.h"
#include "kernels/metal/weight_params.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kLoraThreads = 128;  // 8 rows of 16 outputs
METAL_CONSTANT int kLoraTileRows = 32;  // most rows of a tile
METAL_CONSTANT int kLoraHeader = 64;    // bytes before a slot's B: rank (int), scale (float)

struct LoraParams {
  int32_t outputs;
  int32_t slot_bytes;    // of B
  int32_t inner_stride;  // floats from one row of A x to the next
  int32_t inner_first;   // column of this layer's
  int32_t out_stride;
  int32_t out_first;
};

}  // namespace metal
}  // namespace octavo
