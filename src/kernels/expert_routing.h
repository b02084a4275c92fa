// expert_routing.h - which experts each token meets, and with which weights.
#pragma once

#include <optional>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/expert_choice.h"

namespace octavo {

struct Routing {
  mx::array ids;      // [T, top_k] int32, rising in each row
  mx::array weights;  // [T, top_k] float32
};

struct RoutingOptions {
  std::optional<mx::array> bias;  // [experts] float32, added to scores to pick by, not to weigh
  std::optional<mx::array> expert_scales;  // [experts] float32, of each expert's weight
  KernelPath path = KernelPath::kNative;
};

// logits: [T, choice.experts] float32. Of equal scores the lower expert (or group) is picked; NaN
// counts as minus infinity. With groups, experts of the others take part with a score of 0.
Routing route_experts(const mx::array& logits, const ExpertChoice& choice,
                      const RoutingOptions& options = {});

namespace reference {
Routing route_experts(const mx::array& logits, const ExpertChoice& choice,
                      const RoutingOptions& options);
}

}  // namespace octavo
