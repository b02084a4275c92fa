// Gemma 2: norms before and after both sublayers, soft caps on scores and logits, a sliding window
// in every second layer.
#include <cmath>

#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_gemma2(const Config& given) {
  const Config config = given.with_defaults({{"head_dim", 256},
                                             {"max_position_embeddings", 8192},
                                             {"query_pre_attn_scalar", 256},
                                             {"sliding_window", 4096},
                                             {"tie_word_embeddings", true},
                                             {"attn_logit_softcapping", 50.0},
                                             {"final_logit_softcapping", 30.0}});
  DecoderPlan plan = plan_llama_like(
      config, "gemma2", {"hidden_activation", "gelu_pytorch_tanh", Activation::kGeluTanh});
  plan.norm_offset = 1;
  plan.embedding_scale = std::sqrt(static_cast<float>(plan.hidden));
  plan.final_soft_cap = static_cast<float>(config.number_or("final_logit_softcapping", 0, 0));
  set_sandwich_norms(plan);
  const bool bias = config.boolean_or("attention_bias", false);
  const std::vector<bool> sliding = sliding_layers(config, plan.layers.size(), 2);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    AttentionPlan& attention = plan.layers[i].attention();
    attention.scale = 1 / std::sqrt(static_cast<float>(config.positive("query_pre_attn_scalar")));
    attention.soft_cap = static_cast<float>(config.number_or("attn_logit_softcapping", 0, 0));
    attention.qkv_bias = attention.output_bias = bias;
    if (sliding[i]) attention.window = config.integer("sliding_window");
  }
  return plan;
}

}  // namespace octavo
