// GLM-4.5, 4.6 and 4.7: grouped-query attention with rope on half of each head, and DeepSeek-V3's
// experts. The multi-token prediction layer at the end of the checkpoint is a drafter (find_mtp.cpp).
#include "models/families/deepseek_like.h"
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_glm4_moe(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "glm4_moe");
  plan.ropes = {plan_rope(config, rotated_dims(config, plan.layers[0].attention().head_dim, 0.5))};
  for (auto& layer : plan.layers) {
    layer.attention().qk_norm = config.boolean_or("use_qk_norm", false);
    layer.attention().qkv_bias = config.boolean_or("attention_bias", false);
  }
  place_deepseek_experts(config, plan);
  route_by_sigmoid(config, plan);
  return plan;
}

}  // namespace octavo
