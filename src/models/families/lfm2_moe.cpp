// LFM2 with experts (LFM2-8B-A1B): LFM2's layers; after the first num_dense_layers, the feed-forward
// is a mixture of experts selected by sigmoid scores with a bias.
#include "models/families/families.h"

namespace octavo {
namespace {

MoePlan plan_lfm2_experts(const Config& config) {
  MoePlan plan;
  plan.choice.experts = config.integer("num_experts", 1, 1 << 16);
  plan.choice.top_k = config.integer("num_experts_per_tok", 1, plan.choice.experts);
  plan.choice.score = ExpertScore::kSigmoid;
  plan.choice.renormalize = config.boolean_or("norm_topk_prob", true);
  plan.choice.scale = static_cast<float>(config.positive_or("routed_scaling_factor", 1));
  plan.choice_bias = config.boolean_or("use_expert_bias", true);
  plan.intermediate = config.integer("moe_intermediate_size", 8, 1 << 22);
  plan.names.choice_bias = "expert_bias";
  plan.names.expert_gate = "w1";
  plan.names.expert_up = "w3";
  plan.names.expert_down = "w2";
  return plan;
}

}  // namespace

DecoderPlan plan_lfm2_moe(const Config& config) {
  DecoderPlan plan = plan_lfm2(config);
  plan.family = "lfm2_moe";
  const MoePlan experts = plan_lfm2_experts(config);
  const auto dense = static_cast<size_t>(config.integer_or("num_dense_layers", 2, 0, 1 << 16));
  for (size_t i = dense; i < plan.layers.size(); ++i) plan.layers[i].ffn = experts;
  return plan;
}

}  // namespace octavo
