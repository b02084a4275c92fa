// Gemma 3: Gemma 2's norms, norms on q and k instead of soft caps, and sliding windows in five of
// six layers, which have a separate rope base.
#include <cmath>

#include "base/half.h"
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_gemma3(const Config& given) {
  const Config config = given.with_defaults({{"vocab_size", 262208},
                                             {"hidden_size", 2304},
                                             {"num_hidden_layers", 26},
                                             {"intermediate_size", 9216},
                                             {"num_attention_heads", 8},
                                             {"num_key_value_heads", 4},
                                             {"head_dim", 256},
                                             {"max_position_embeddings", 131072},
                                             {"query_pre_attn_scalar", 256},
                                             {"sliding_window", 4096},
                                             {"tie_word_embeddings", true}});
  if (config.boolean_or("use_bidirectional_attention", false))
    config.fail("use_bidirectional_attention", "is true; only causal attention is supported");
  DecoderPlan plan = plan_llama_like(
      config, "gemma3", {"hidden_activation", "gelu_pytorch_tanh", Activation::kGeluTanh});
  plan.norm_offset = 1;
  // Rounded to bfloat16 in every data type, as in training.
  plan.embedding_scale = bf16_to_float(float_to_bf16(std::sqrt(static_cast<float>(plan.hidden))));
  plan.final_soft_cap = static_cast<float>(config.number_or("final_logit_softcapping", 0, 0));
  set_sandwich_norms(plan);
  const int dims = plan.layers[0].attention().head_dim;
  plan.ropes = {plan_rope_of(config, "full_attention", dims,
                             {config.number_or("rope_theta", 1e6), config.object("rope_scaling")}),
                plan_rope_of(config, "sliding_attention", dims,
                             {config.number_or("rope_local_base_freq", 10000)})};
  const bool bias = config.boolean_or("attention_bias", false);
  const std::vector<bool> sliding = sliding_layers(config, plan.layers.size(), 6);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    AttentionPlan& attention = plan.layers[i].attention();
    attention.scale = 1 / std::sqrt(static_cast<float>(config.positive("query_pre_attn_scalar")));
    attention.soft_cap = static_cast<float>(config.number_or("attn_logit_softcapping", 0, 0));
    attention.qk_norm = true;
    attention.sees_later = true;
    attention.qkv_bias = attention.output_bias = bias;
    attention.rope = sliding[i] ? 1 : 0;
    if (sliding[i]) attention.window = config.integer("sliding_window");
  }
  return plan;
}

}  // namespace octavo
