// OLMo 2: norms only after each sublayer, and norms on q and k over all heads at once.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_olmo2(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "olmo2");
  const bool bias = config.boolean_or("attention_bias", false);
  for (auto& layer : plan.layers) {
    layer.mixer_half = {"", "post_attention_layernorm"};
    layer.ffn_half = {"", "post_feedforward_layernorm"};
    layer.attention().qk_norm = layer.attention().norms_rows = true;
    layer.attention().qkv_bias = layer.attention().output_bias = bias;
    layer.mlp().bias = config.boolean_or("mlp_bias", false);
  }
  return plan;
}

}  // namespace octavo
