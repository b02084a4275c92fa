// Llama 2, 3, 3.x and SmolLM2.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_llama(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "llama");
  const bool attention_bias = config.boolean_or("attention_bias", false);
  const bool mlp_bias = config.boolean_or("mlp_bias", false);
  for (auto& layer : plan.layers) {
    layer.attention().qkv_bias = attention_bias;
    layer.attention().output_bias = attention_bias;
    layer.mlp().bias = mlp_bias;
  }
  return plan;
}

}  // namespace octavo
