// expert_mlp_params.h - shared by expert_order.metal, expert_sum.metal and their host code. No MLX.
#pragma once

#include "kernels/metal/expert_routing_params.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kOrderThreads = 256;
METAL_CONSTANT int kSumThreads = 128;

struct ExpertOrderParams {
  int32_t pairs;  // tokens * top_k
  int32_t top_k;
  int32_t experts;
  int32_t tile_rows;  // maximum rows per tile
};

struct ExpertSumParams {
  int32_t top_k;
  int32_t hidden;
};

}  // namespace metal
}  // namespace octavo
