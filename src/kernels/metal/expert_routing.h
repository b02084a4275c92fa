// expert_routing.h (metal) - dispatch of the routing to experts.
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

// Throws SetupError for more experts than the kernel can do.
void route_experts(const RoutingCall& call, Encoder& encoder);

}  // namespace octavo::metal
