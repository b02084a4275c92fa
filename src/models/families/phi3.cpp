// Phi-3, Phi-3.5 and Phi-4: Llama with q, k, v in one matrix, gate and up in another, rope on part
// of each head, and a sliding window if the config has one.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_phi3(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "phi3");
  const int window = config.integer_or("sliding_window", 0);
  for (auto& layer : plan.layers) {
    layer.attention().fused_qkv = true;
    layer.attention().window = window;
    layer.mlp().fused = true;
  }
  return plan;
}

}  // namespace octavo
