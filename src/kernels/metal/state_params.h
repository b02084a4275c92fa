// state_params.h - shared by the kernels over states in pages and their host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

// The location of state blocks (state_geometry.h): block b of the layer is block first + b when
// counted over all pages.
struct StatePlaces {
  int32_t columns;  // the table has this many sources, then sets of as many destinations
  int32_t table_columns;
  int32_t column;  // of the first block's page
  int32_t first;
  int32_t per_page;
  uint32_t block_bytes;
  uint32_t page_bytes;
};

// The causal convolution: a threadgroup processes kConvThreads channels of up to kConvRows rows of
// one sequence.
METAL_CONSTANT int kConvThreads = 128;
METAL_CONSTANT int kConvRows = 32;

struct ConvParams {
  StatePlaces places;
  int32_t sequences;
  int32_t channels;
  int32_t unit_channels;
  int32_t x_stride;
  int32_t x_first;
};

// Recurrences with a matrix per head: a simdgroup keeps kStateRows rows of it.
METAL_CONSTANT int kStateRows = 8;
METAL_CONSTANT int kStateSimdgroups = 4;  // per threadgroup
METAL_CONSTANT int kStateLargestDim = 256;

struct DeltaParams {
  StatePlaces places;
  int32_t qkv_stride;
  int32_t gates_stride;
  int32_t z_column;
  int32_t a_column;
  int32_t b_column;
  int32_t key_heads;
  int32_t value_heads;
  int32_t k_dim;
  int32_t v_dim;
  float q_scale;
  float norm_eps;
};

struct MambaParams {
  StatePlaces places;
  int32_t xbc_stride;
  int32_t gates_stride;
  int32_t z_column;
  int32_t dt_column;
  int32_t heads;
  int32_t groups;
  int32_t state_dim;
  int32_t head_dim;
};

}  // namespace metal
}  // namespace octavo
