// expert_routing.h (metal) - launches expert_routing.metal.
#pragma once

#include <optional>

#include "kernels/metal/encoder.h"
#include "kernels/types/expert_choice.h"

namespace octavo::metal {

struct RoutingCall {
  mx::array logits;
  std::optional<mx::array> bias = {};
  std::optional<mx::array> expert_scales = {};
  ExpertChoice choice;
  mx::array ids;
  mx::array weights;
};

// Throws SetupError if there are more than kMostExperts experts.
void route_experts(const RoutingCall& call, Encoder& encoder);

}  // namespace octavo::metal
