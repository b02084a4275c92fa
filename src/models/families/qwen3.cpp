// Qwen3 dense: Llama with an RMS norm on every head of q and k, and an explicit head_dim.
#include "models/families/families.h"
#include "models/families/llama_like.h"
#include "models/families/qwen_windows.h"

namespace octavo {

DecoderPlan plan_qwen3(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "qwen3");
  const bool bias = config.boolean_or("attention_bias", false);
  for (auto& layer : plan.layers) {
    layer.attention().qk_norm = true;
    layer.attention().qkv_bias = bias;
    layer.attention().output_bias = bias;
  }
  set_qwen_windows(config, plan);
  return plan;
}

}  // namespace octavo
