// Qwen3 MoE: Qwen3 with experts in most layers.
#include "models/families/families.h"
#include "models/families/qwen_experts.h"

namespace octavo {

DecoderPlan plan_qwen3_moe(const Config& config) {
  DecoderPlan plan = plan_qwen3(config);
  plan.family = "qwen3_moe";
  if (config.boolean_or("use_sliding_window", false))
    config.fail("use_sliding_window", "is true; a sliding window is not supported for this family");
  place_qwen_experts(config, plan_qwen_experts(config), plan);
  return plan;
}

}  // namespace octavo
