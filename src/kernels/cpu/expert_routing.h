// expert_routing.h (cpu) - selects each token's experts, over raw memory. No MLX.
#pragma once

#include <cstdint>

#include "kernels/types/expert_choice.h"

namespace octavo::cpu {

struct RoutingArgs {
  const float* logits = nullptr;  // [tokens, choice.experts]
  int64_t tokens = 0;
  ExpertChoice choice = {};
  const float* bias = nullptr;           // [experts] or null
  const float* expert_scales = nullptr;  // [experts] or null
  int32_t* ids = nullptr;                // [tokens, top_k]
  float* weights = nullptr;              // [tokens, top_k]
};

void route_experts(const RoutingArgs& args);

}  // namespace octavo::cpu
