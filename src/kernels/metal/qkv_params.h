// qkv_params.h - shared by qkv_write.metal, latent_write.metal and their host code. No MLX.
#pragma once

#include "kernels/metal/page_params.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kRowSimdgroups = 4;  // per token

// The location of a matrix of rows in an argument, in elements.
struct RowsAt {
  int32_t first;
  int32_t stride;  // from one token to the next
};

// The heads of a token are adjacent.
struct QkvParams {
  PageParams pages;
  RowsAt q, k, v;
  int32_t pairs;  // that are rotated, of each head
  int32_t sequences;
  int32_t q_heads;   // 0: no q
  int32_t kv_heads;  // 0: only q
  int32_t k_dim;     // also of q
  int32_t v_dim;
  float eps;
  float position_beta;
  float position_period;
};

struct LatentParams {
  PageParams pages;
  int32_t pairs;
  int32_t sequences;
  int32_t heads;
  int32_t q_dim;
  int32_t rank;
  float eps;
};

}  // namespace metal
}  // namespace octavo
