// Qwen3-Next: a hybrid whose delta layers have two projections, grouped by key head.
#include "models/families/families.h"
#include "models/families/qwen_hybrid.h"

namespace octavo {

DecoderPlan plan_qwen3_next(const Config& config) {
  DecoderPlan plan = plan_qwen_hybrid(config, "qwen3_next");
  for (auto& layer : plan.layers) {
    if (auto* delta = std::get_if<GatedDeltaPlan>(&layer.mixer)) delta->joined_by_head = true;
  }
  return plan;
}

}  // namespace octavo
