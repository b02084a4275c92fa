// route_experts.h (metal) - dispatch of the routing to experts.
#pragma once

#include <optional>

#include "kernels/metal/encoder.h"
#include "kernels/types/expert_choice.h"

namespace octavo::metal {

struct RoutingArrays {
  mx::array logits;
  std::optional<mx::array> bias = {};
  std::optional<mx::array> expert_scales = {};
  mx::array ids;
  mx::array weights;
};

// Throws SetupError for more experts than the kernel can do.
void route_experts(const RoutingArrays& arrays, const ExpertChoice& choice, Encoder& encoder);

}  // namespace octavo::metal
