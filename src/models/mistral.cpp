// Mistral 7B and its relatives: Llama with an optional sliding window in every layer.
#include "models/families.h"
#include "models/llama_like.h"

namespace octavo {

DecoderPlan plan_mistral(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "mistral");
  const int window = config.integer_or("sliding_window", 0);
  for (auto& layer : plan.layers) layer.attention().window = window;
  return plan;
}

}  // namespace octavo
