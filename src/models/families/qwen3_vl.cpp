// Qwen3-VL, dense or with experts: Qwen3 whose positions have three axes. Parts of encoded images are
// added after the first layers; see Embedded::images.
#include "models/families/families.h"
#include "models/families/qwen_axes.h"
#include "models/families/qwen_experts.h"

namespace octavo {

DecoderPlan plan_qwen3_vl(const Config& config) {
  DecoderPlan plan = plan_qwen3(config);
  plan.family = "qwen3_vl";
  for (RopePlan& rope : plan.ropes)
    rope.axes = qwen_rope_axes(config, rope.inverse_frequencies.size(), {24, 20, 20});
  return plan;
}

DecoderPlan plan_qwen3_vl_moe(const Config& config) {
  DecoderPlan plan = plan_qwen3_vl(config);
  plan.family = "qwen3_vl_moe";
  MoePlan experts = plan_qwen_experts(config);
  if (!config.boolean_or("norm_topk_prob", true))
    config.fail("norm_topk_prob", "is false; only true is supported for this family");
  experts.choice.renormalize = true;
  experts.may_be_turned = true;
  place_qwen_experts(config, experts, plan);
  return plan;
}

}  // namespace octavo
