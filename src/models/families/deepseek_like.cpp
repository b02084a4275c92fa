#include "models/families/deepseek_like.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/families/llama_like.h"

namespace octavo {
namespace {

// By layer: true for experts, from mlp_layer_types, which transformers saves for GLM. Empty without it.
std::vector<bool> sparse_layers(const Config& config, size_t layers) {
  std::vector<bool> sparse;
  for (const std::string& type : config.texts("mlp_layer_types")) {
    if (type != "sparse" && type != "dense")
      config.fail("mlp_layer_types", "has an entry other than sparse and dense");
    sparse.push_back(type == "sparse");
  }
  if (!sparse.empty() && sparse.size() != layers)
    config.fail("mlp_layer_types", "does not have one entry per layer");
  return sparse;
}

}  // namespace

MoePlan plan_deepseek_experts(const Config& config) {
  MoePlan plan;
  ExpertChoice& choice = plan.choice;
  choice.experts = config.integer("n_routed_experts", 1, 1 << 16);
  choice.top_k = config.integer("num_experts_per_tok", 1, choice.experts);
  choice.groups = config.integer_or("n_group", 1, 1, choice.experts);
  choice.top_groups = config.integer_or("topk_group", choice.groups, 1, choice.groups);
  if (choice.experts % choice.groups != 0) {
    config.fail("n_group", fmt::format("is {}, which does not divide {} experts", choice.groups,
                                       choice.experts));
  }
  choice.scale = static_cast<float>(config.positive_or("routed_scaling_factor", 1));
  plan.intermediate = config.integer("moe_intermediate_size", 8, 1 << 22);
  constexpr int kWidest = 1 << 24;
  plan.shared_intermediate =
      plan.intermediate * config.integer_or("n_shared_experts", 0, 0, kWidest / plan.intermediate);
  return plan;
}

DecoderPlan plan_deepseek_like(const Config& config, const char* family) {
  DecoderPlan plan = plan_frame(config, family);
  MlaPlan attention = plan_mla(config);
  plan.ropes = {plan_rope(config, attention.rope_dim)};
  attention.scale *= plan.ropes[0].score_scale;
  attention.rope_in_pairs = config.boolean_or("rope_interleave", true);
  for (auto& layer : plan.layers) layer.mixer = attention;
  place_deepseek_experts(config, plan);
  return plan;
}

void place_deepseek_experts(const Config& config, DecoderPlan& plan) {
  const int first = config.integer_or("first_k_dense_replace", 0, 0, 1 << 16);
  const int every = config.integer_or("moe_layer_freq", 1, 1, 1 << 16);
  const std::vector<bool> sparse = sparse_layers(config, plan.layers.size());
  for (int i = 0; i < static_cast<int>(plan.layers.size()); ++i) {
    const bool routed =
        sparse.empty() ? i >= first && i % every == 0 : sparse[static_cast<size_t>(i)];
    if (config.has("n_routed_experts") && routed)
      plan.layers[static_cast<size_t>(i)].ffn = plan_deepseek_experts(config);
  }
}

void route_by_sigmoid(const Config& config, DecoderPlan& plan) {
  if (const std::string method = config.text_or("topk_method", "noaux_tc"); method != "noaux_tc")
    config.fail("topk_method", fmt::format("is \"{}\"; only noaux_tc is supported", method));
  if (const std::string score = config.text_or("scoring_func", "sigmoid"); score != "sigmoid")
    config.fail("scoring_func", fmt::format("is \"{}\"; only sigmoid is supported", score));
  const bool normed = config.boolean_or("norm_topk_prob", true);
  each_experts(plan, [&](MoePlan& experts) {
    experts.choice.score = ExpertScore::kSigmoid;
    experts.choice.group_score = GroupScore::kTopTwo;
    experts.choice.renormalize = normed && experts.choice.top_k > 1;
    experts.choice_bias = true;
  });
}

}  // namespace octavo
