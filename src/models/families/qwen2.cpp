// Qwen2 and Qwen2.5: Llama with biases on q, k and v.
#include "models/families/families.h"
#include "models/families/llama_like.h"
#include "models/families/qwen_windows.h"

namespace octavo {

DecoderPlan plan_qwen2(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "qwen2");
  for (auto& layer : plan.layers) layer.attention().qkv_bias = true;
  set_qwen_windows(config, plan);
  return plan;
}

}  // namespace octavo
