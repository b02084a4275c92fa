// Granite 4: Granite's scales; Mamba-2 or attention layers, mostly without rope; a dense MLP, or
// experts and a shared expert.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/families/families.h"
#include "models/families/mamba_keys.h"

namespace octavo {
namespace {

// By layer: true for Mamba-2. Both spellings are in use; transformers 5 saves the second one.
std::vector<bool> mamba_layers(const Config& config, size_t layers) {
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.size() != layers) config.fail("layer_types", "does not have one entry per layer");
  std::vector<bool> mamba;
  for (const std::string& type : types) {
    mamba.push_back(type == "mamba" || type == "linear_attention");
    if (!mamba.back() && type != "attention" && type != "full_attention") {
      config.fail("layer_types", fmt::format("has an unknown layer type \"{}\"; only mamba and "
                                             "attention are supported",
                                             type));
    }
  }
  if (std::ranges::find(mamba, false) == mamba.end())
    config.fail("layer_types", "has no attention layer, which is not supported");
  return mamba;
}

Mamba2Plan plan_granite_mamba(const Config& config, int hidden) {
  const int heads = config.integer("mamba_n_heads", 1, 4096);
  const int values = config.integer_or("mamba_expand", 2, 1, 64) * hidden;
  const auto* dim = config.find("mamba_d_head");
  const bool automatic = dim == nullptr || *dim == "auto";
  const Mamba2Plan plan =
      plan_mamba2(automatic ? config.with_values({{"mamba_d_head", values / heads}}) : config,
                  {.heads = "mamba_n_heads",
                   .head_dim = "mamba_d_head",
                   .groups = "mamba_n_groups",
                   .state_dim = "mamba_d_state",
                   .conv_kernel = "mamba_d_conv",
                   .conv_bias = "mamba_conv_bias",
                   .bias = "mamba_proj_bias"});
  if (plan.values() != values) {
    config.fail("mamba_n_heads", fmt::format("is {}; heads of {} must have {} numbers together",
                                             heads, plan.head_dim, values));
  }
  return plan;
}

MoePlan plan_granite_experts(const Config& config) {
  MoePlan plan;
  plan.choice.experts = config.integer("num_local_experts", 1, 1 << 16);
  plan.choice.top_k = config.integer("num_experts_per_tok", 1, plan.choice.experts);
  plan.choice.score = ExpertScore::kSoftmaxOfChosen;
  plan.intermediate = config.integer("intermediate_size", 8, 1 << 22);
  plan.shared_intermediate = config.integer("shared_intermediate_size", 8, 1 << 22);
  plan.shared_fused = true;
  plan.names.router = "router.layer";
  plan.names.shared = "shared_mlp";
  return plan;
}

void set_feed_forward(const Config& config, DecoderPlan& plan) {
  if (config.integer_or("num_local_experts", 0, 0, 1 << 16) == 0) {
    config.disregard({"num_experts_per_tok", "intermediate_size"});
    for (auto& layer : plan.layers) {
      layer.mlp() = {.intermediate = config.integer("shared_intermediate_size", 8, 1 << 22),
                     .fused = true};
    }
    plan.renames = {{".mlp.gate_up_proj", ".shared_mlp.input_linear"},
                    {".mlp.down_proj", ".shared_mlp.output_linear"}};
    return;
  }
  for (auto& layer : plan.layers) {
    layer.ffn = plan_granite_experts(config);
    layer.ffn_name = "block_sparse_moe";
  }
  plan.renames = {
      {".block_sparse_moe.shared_mlp.gate_up_proj", ".shared_mlp.input_linear"},
      {".block_sparse_moe.shared_mlp.down_proj", ".shared_mlp.output_linear"},
      {".block_sparse_moe.experts.gate_up_proj", ".block_sparse_moe.input_linear"},
      {".block_sparse_moe.experts.down_proj", ".block_sparse_moe.output_linear"},
  };
}

// True for rope; without the key there is none.
bool has_rope(const Config& config) {
  const std::string type = config.text_or("position_embedding_type", "nope");
  if (type != "rope" && type != "nope") {
    config.fail("position_embedding_type",
                fmt::format("is \"{}\"; only rope and nope are supported", type));
  }
  return type == "rope";
}

}  // namespace

DecoderPlan plan_granitemoehybrid(const Config& config) {
  DecoderPlan plan = plan_granite(config);
  plan.family = "granitemoehybrid";
  set_feed_forward(config, plan);
  const std::vector<bool> mamba = mamba_layers(config, plan.layers.size());
  const bool rope = has_rope(config);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    LayerPlan& layer = plan.layers[i];
    if (mamba[i]) {
      layer.mixer = plan_granite_mamba(config, plan.hidden);
      layer.mixer_name = "mamba";
    } else if (!rope) {
      layer.attention().rope.reset();
    }
  }
  if (std::ranges::find(mamba, true) == mamba.end()) {
    config.disregard({"mamba_n_heads", "mamba_expand", "mamba_d_head", "mamba_n_groups",
                      "mamba_d_state", "mamba_d_conv", "mamba_conv_bias", "mamba_proj_bias",
                      "time_step_limit"});
  }
  return plan;
}

}  // namespace octavo
