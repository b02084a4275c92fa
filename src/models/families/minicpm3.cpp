// MiniCPM3: latent attention in every layer, dense MLPs, and scales on embeddings, sublayer results
// and logits.
#include <cmath>

#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_minicpm3(const Config& config) {
  DecoderPlan plan = plan_frame(config, "minicpm3");
  // The defaults of its configuration class.
  plan.tied_embeddings = config.boolean_or("tie_word_embeddings", true);
  const MlaPlan attention =
      plan_mla(config, plan.hidden / config.integer("num_attention_heads", 1, 4096));
  for (auto& layer : plan.layers) layer.mixer = attention;
  plan.ropes = {plan_rope(config, attention.rope_dim)};
  plan.embedding_scale = static_cast<float>(config.positive("scale_emb"));
  plan.residual_scale = static_cast<float>(config.positive("scale_depth") /
                                           std::sqrt(static_cast<double>(plan.layers.size())));
  plan.logit_scale = static_cast<float>(config.positive("dim_model_base") / plan.hidden);
  return plan;
}

}  // namespace octavo
