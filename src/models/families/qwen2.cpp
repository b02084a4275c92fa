// Qwen2 and Qwen2.5: Llama with biases on q, k and v.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_qwen2(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "qwen2");
  const bool windowed = config.boolean_or("use_sliding_window", false);
  const auto first_windowed = static_cast<size_t>(config.integer_or("max_window_layers", 28));
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    plan.layers[i].attention().qkv_bias = true;
    if (windowed && i >= first_windowed)
      plan.layers[i].attention().window = config.integer_or("sliding_window", 0);
  }
  return plan;
}

}  // namespace octavo
