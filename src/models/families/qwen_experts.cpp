#include "models/families/qwen_experts.h"

#include <algorithm>

namespace octavo {

MoePlan plan_qwen_experts(const Config& config) {
  MoePlan plan;
  // transformers 5 saves a Qwen3 MoE with the other name.
  const bool renamed = config.has("num_local_experts") && !config.has("num_experts");
  const char* count = renamed ? "num_local_experts" : "num_experts";
  plan.choice.experts = config.integer(count, 1, 1 << 16);
  plan.choice.top_k = config.integer("num_experts_per_tok", 1, plan.choice.experts);
  plan.choice.renormalize = config.boolean_or("norm_topk_prob", false);
  plan.intermediate = config.integer("moe_intermediate_size", 8, 1 << 22);
  plan.shared_intermediate = config.integer_or("shared_expert_intermediate_size", 0, 0, 1 << 22);
  plan.shared_gate = plan.shared_intermediate > 0;
  plan.names.shared = "shared_expert";
  return plan;
}

void place_qwen_experts(const Config& config, const MoePlan& experts, DecoderPlan& plan) {
  const int step = config.integer_or("decoder_sparse_step", 1, 1);
  const std::vector<int> dense = config.integers("mlp_only_layers");
  for (int i = 0; i < static_cast<int>(plan.layers.size()); ++i) {
    if ((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end())
      plan.layers[static_cast<size_t>(i)].ffn = experts;
  }
}

}  // namespace octavo
