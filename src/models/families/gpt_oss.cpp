// gpt-oss: biases everywhere, an attention sink per query head, a sliding window in every other
// layer, and experts with a clamped activation.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {
namespace {

MoePlan plan_gpt_oss_experts(const Config& config) {
  MoePlan plan;
  plan.choice.experts = config.integer("num_local_experts", 1, 1 << 16);
  plan.choice.top_k = config.integer_or("num_experts_per_tok", 4, 1, plan.choice.experts);
  plan.choice.score = ExpertScore::kSoftmaxOfChosen;
  plan.intermediate = config.integer("intermediate_size", 8, 1 << 22);
  plan.activation = Activation::kBoundedSilu;
  if (config.number_or("swiglu_limit", 7) != 7) config.fail("swiglu_limit", "must be 7");
  plan.expert_bias = true;
  plan.router_bias = true;
  plan.interleaves_gate_up = true;
  plan.names.router = "router";
  plan.names.stack = "experts";
  return plan;
}

}  // namespace

DecoderPlan plan_gpt_oss(const Config& config) {
  DecoderPlan plan = plan_llama_like(config, "gpt_oss");
  const MoePlan experts = plan_gpt_oss_experts(config);
  const bool bias = config.boolean_or("attention_bias", true);
  const std::vector<bool> windowed = sliding_layers(config, plan.layers.size(), 2);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    AttentionPlan& attention = plan.layers[i].attention();
    attention.qkv_bias = attention.output_bias = bias;
    attention.sinks = true;
    if (windowed[i]) attention.window = config.integer_or("sliding_window", 128, 1);
    plan.layers[i].ffn = experts;
  }
  return plan;
}

}  // namespace octavo
