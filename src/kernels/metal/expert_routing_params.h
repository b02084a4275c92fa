// expert_routing_params.h - shared by expert_routing.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/shared_types.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kMostExperts = 1024;  // each of 32 lanes tracks its experts in a 32-bit word

struct RoutingParams {
  int32_t experts;
  int32_t top_k;
  int32_t groups;
  int32_t top_groups;
  float scale;
  float renormalize_eps;
};

}  // namespace metal
}  // namespace octavo
