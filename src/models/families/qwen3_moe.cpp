// Qwen3 MoE: Qwen3 with experts in most layers.
#include "models/families/families.h"
#include "models/families/qwen_experts.h"
#include "models/families/qwen_windows.h"

namespace octavo {

DecoderPlan plan_qwen3_moe(const Config& config) {
  refuse_windows(config);
  DecoderPlan plan = plan_qwen3(config);
  plan.family = "qwen3_moe";
  place_qwen_experts(config, plan_qwen_experts(config), plan);
  return plan;
}

}  // namespace octavo
