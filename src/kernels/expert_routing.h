// expert_routing.h - selects each token's experts and their weights.
#pragma once

#include <optional>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/expert_choice.h"

namespace octavo {

struct Routing {
  mx::array ids;      // [T, top_k] int32, ascending in each row
  mx::array weights;  // [T, top_k] float32
};

struct RoutingOptions {
  std::optional<mx::array>
      bias;  // [experts] float32, added to scores for selection, not for weights
  std::optional<mx::array> expert_scales;  // [experts] float32, multiplies each expert's weight
  KernelPath path = KernelPath::kNative;
};

// logits: [T, choice.experts] float32. Of equal scores the lower expert (or group) is selected; NaN
// counts as minus infinity. With groups, experts of the other groups compete with a score of 0.
Routing route_experts(const mx::array& logits, const ExpertChoice& choice,
                      const RoutingOptions& options = {});

namespace reference {
Routing route_experts(const mx::array& logits, const ExpertChoice& choice,
                      const RoutingOptions& options);
}

}  // namespace octavo
