// Granite 3: Llama with scales on embeddings, scores, sublayer results and logits.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_granite(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "granite");
  const double logits_scaling = config.positive_or("logits_scaling", 1);
  const double score_scale = config.positive_or("attention_multiplier", 1);
  plan.embedding_scale = static_cast<float>(config.positive_or("embedding_multiplier", 1));
  plan.residual_scale = static_cast<float>(config.positive_or("residual_multiplier", 1));
  plan.logit_scale = static_cast<float>(1 / logits_scaling);
  const bool bias = config.boolean_or("attention_bias", false);
  for (auto& layer : plan.layers) {
    layer.attention().scale = static_cast<float>(score_scale);
    layer.attention().qkv_bias = layer.attention().output_bias = bias;
    layer.mlp().bias = config.boolean_or("mlp_bias", false);
  }
  return plan;
}

}  // namespace octavo
