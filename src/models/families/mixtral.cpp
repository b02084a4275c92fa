// Mixtral: Mistral with experts in every layer, weighted by softmax over the chosen experts.
#include "models/families/families.h"

namespace octavo {

DecoderPlan plan_mixtral(const Config& config) {
  DecoderPlan plan = plan_mistral(config);
  plan.family = "mixtral";
  MoePlan experts;
  experts.choice.experts = config.integer("num_local_experts", 1, 1 << 16);
  experts.choice.top_k = config.integer_or("num_experts_per_tok", 2, 1, experts.choice.experts);
  experts.choice.score = ExpertScore::kSoftmaxOfChosen;
  experts.intermediate = config.integer("intermediate_size", 8, 1 << 22);
  experts.names.expert_gate = "w1";
  experts.names.expert_up = "w3";
  experts.names.expert_down = "w2";
  for (auto& layer : plan.layers) {
    layer.ffn = experts;
    layer.ffn_name = "block_sparse_moe";
  }
  return plan;
}

}  // namespace octavo
