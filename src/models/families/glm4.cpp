// GLM-4 (0414): norms before and after both sublayers, gate and up in one matrix, and rope on
// adjacent pairs of half of each head.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_glm4(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "glm4");
  plan.ropes = {plan_rope(config, rotated_dims(config, plan.layers[0].attention().head_dim, 0.5))};
  for (auto& layer : plan.layers) {
    layer.mixer_half = {"input_layernorm", "post_self_attn_layernorm"};
    layer.ffn_half = {"post_attention_layernorm", "post_mlp_layernorm"};
    layer.attention().qkv_bias = config.boolean_or("attention_bias", false);
    layer.attention().interleaved_rope = true;
    layer.mlp().fused = true;
  }
  return plan;
}

}  // namespace octavo
