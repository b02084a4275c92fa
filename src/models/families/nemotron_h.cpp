// Nemotron-H and Nemotron 3 Nano: every layer is one of Mamba-2, attention without rope, an MLP with
// the square of relu, or experts of the same kind.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/families/deepseek_like.h"
#include "models/families/families.h"
#include "models/families/llama_like.h"
#include "models/families/mamba_keys.h"

namespace octavo {
namespace {

enum class Block : uint8_t { kMamba, kAttention, kMlp, kExperts };

Block block_of(const Config& config, const char* key, const std::string& name) {
  if (name == "M" || name == "mamba" || name == "linear_attention") return Block::kMamba;
  if (name == "*" || name == "attention" || name == "full_attention") return Block::kAttention;
  if (name == "-" || name == "mlp") return Block::kMlp;
  if (name == "E" || name == "moe") return Block::kExperts;
  config.fail(key, fmt::format("has an unknown layer type \"{}\"", name));
}

// The layers, from hybrid_override_pattern ("M-M*E") or layers_block_type, a list.
std::vector<Block> blocks_of(const Config& config) {
  const char* key = "hybrid_override_pattern";
  std::vector<std::string> names;
  if (const auto* pattern = config.find(key); pattern != nullptr && pattern->is_string()) {
    for (const char letter : config.text(key)) names.emplace_back(1, letter);
  } else if (pattern != nullptr) {
    names = config.texts(key);
  } else {
    key = config.has("layers_block_type") ? "layers_block_type" : "layer_types";
    names = config.texts(key);
  }
  config.disregard({"hybrid_override_pattern", "layers_block_type", "layer_types"});
  if (names.empty() || names.size() > 4096) config.fail(key, "does not list the model's layers");
  std::vector<Block> blocks;
  for (const std::string& name : names) blocks.push_back(block_of(config, key, name));
  if (std::ranges::find(blocks, Block::kAttention) == blocks.end())
    config.fail(key, "has no attention layer, which is not supported");
  return blocks;
}

// Translates Nemotron's keys to Llama's.
Config in_llamas_keys(const Config& config, size_t layers) {
  config.disregard({"num_hidden_layers"});  // the list of layers decides
  nlohmann::json values = {{"rms_norm_eps", config.number("layer_norm_epsilon", 0, 1)},
                           {"num_hidden_layers", layers}};
  if (config.has("attention_head_dim")) values["head_dim"] = config.integer("attention_head_dim");
  return config.with_values(values);
}

Mamba2Plan plan_nemotron_mamba(const Config& config) {
  if (const auto act = config.text_or("mamba_hidden_act", "silu"); act != "silu")
    config.fail("mamba_hidden_act", fmt::format("is \"{}\"; only silu is supported", act));
  Mamba2Plan plan = plan_mamba2(config, {.heads = "mamba_num_heads",
                                         .head_dim = "mamba_head_dim",
                                         .groups = "n_groups",
                                         .state_dim = "ssm_state_size",
                                         .conv_kernel = "conv_kernel",
                                         .conv_bias = "use_conv_bias",
                                         .bias = "mamba_proj_bias"});
  // transformers reads use_bias, mlx-lm mamba_proj_bias.
  if (config.boolean_or("use_bias", false) != plan.bias)
    config.fail("use_bias", "differs from mamba_proj_bias");
  plan.norm_groups = plan.groups;
  return plan;
}

MoePlan plan_nemotron_experts(const Config& config) {
  if (config.has("moe_latent_size"))
    config.fail("moe_latent_size", "is set; experts on a latent row are not supported");
  if (config.boolean_or("mlp_bias", false))
    config.fail("mlp_bias", "is true, which is not supported for experts");
  MoePlan plan = plan_deepseek_experts(config);
  plan.gated = false;
  plan.activation = Activation::kRelu;
  if (plan.shared_intermediate > 0) {
    plan.shared_intermediate = config.integer("moe_shared_expert_intermediate_size", 8, 1 << 22);
  }
  return plan;
}

void set_block(const Config& config, Block block, LayerPlan& layer) {
  const HalfPlan half = {"norm", ""};
  const bool mixes = block == Block::kMamba || block == Block::kAttention;
  layer.mixer_name = layer.ffn_name = "mixer";
  layer.mixer_half = mixes ? half : HalfPlan{};
  layer.ffn_half = mixes ? HalfPlan{} : half;
  switch (block) {
    case Block::kMamba:
      layer.mixer = plan_nemotron_mamba(config);
      break;
    case Block::kAttention: {
      AttentionPlan& attention = layer.attention();
      attention.rope.reset();
      attention.qkv_bias = attention.output_bias = config.boolean_or("attention_bias", false);
      break;
    }
    case Block::kMlp:
      layer.mlp().gated = false;
      layer.mlp().bias = config.boolean_or("mlp_bias", false);
      break;
    case Block::kExperts:
      layer.ffn = plan_nemotron_experts(config);
  }
  if (mixes) {
    layer.ffn = AbsentPlan{};
  } else {
    layer.mixer = AbsentPlan{};
  }
}

}  // namespace

DecoderPlan plan_nemotron_h(const Config& config) {
  const std::vector<Block> blocks = blocks_of(config);
  DecoderPlan plan =
      plan_llama_like(in_llamas_keys(config, blocks.size()), "nemotron_h",
                      {.key = "mlp_hidden_act", .name = "relu2", .kind = Activation::kRelu});
  plan.prefix = "backbone";
  plan.renames = {{"backbone.embed_tokens", "backbone.embeddings"},
                  {"backbone.norm.", "backbone.norm_f."}};
  for (size_t i = 0; i < blocks.size(); ++i) set_block(config, blocks[i], plan.layers[i]);
  route_by_sigmoid(config, plan);
  // Keys of parts that this model may not have.
  config.disregard({"mamba_num_heads",
                    "mamba_head_dim",
                    "n_groups",
                    "ssm_state_size",
                    "conv_kernel",
                    "use_conv_bias",
                    "mamba_proj_bias",
                    "use_bias",
                    "time_step_limit",
                    "n_routed_experts",
                    "n_shared_experts",
                    "moe_intermediate_size",
                    "moe_shared_expert_intermediate_size",
                    "n_group",
                    "topk_group",
                    "num_experts_per_tok",
                    "routed_scaling_factor",
                    "expand",
                    "intermediate_size",
                    "mlp_bias"});
  return plan;
}

}  // namespace octavo
