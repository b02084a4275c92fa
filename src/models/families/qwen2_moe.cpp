// Qwen1.5 and Qwen2 MoE: Qwen2 with experts and a gated shared expert.
#include "models/families/families.h"
#include "models/families/qwen_experts.h"
#include "models/families/qwen_windows.h"

namespace octavo {

DecoderPlan plan_qwen2_moe(const Config& config) {
  refuse_windows(config);
  DecoderPlan plan = plan_qwen2(config);
  plan.family = "qwen2_moe";
  place_qwen_experts(config, plan_qwen_experts(config), plan);
  return plan;
}

}  // namespace octavo
