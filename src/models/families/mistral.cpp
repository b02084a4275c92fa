// Mistral and Ministral: Llama with a sliding window in some layers, and query scaling by position
// for long contexts. Also as the text part of a multimodal checkpoint.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_mistral(const Config& config) {
  if (config.has("kv_lora_rank"))
    config.fail("kv_lora_rank", "is set; latent attention is not supported for this family");
  DecoderPlan plan = plan_llama_like(config, "mistral");
  const std::vector<bool> sliding = sliding_layers(config, plan.layers.size(), 0);
  const auto rope = config.object("rope_parameters");
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    AttentionPlan& attention = plan.layers[i].attention();
    if (sliding[i]) attention.window = config.integer_or("sliding_window", 0);
    if (!rope || !rope->has("llama_4_scaling_beta")) continue;
    attention.position_beta = static_cast<float>(rope->number("llama_4_scaling_beta"));
    attention.position_period =
        static_cast<float>(rope->integer("original_max_position_embeddings", 1, 1 << 30));
  }
  return plan;
}

}  // namespace octavo
