#include "models/families/qwen_hybrid.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "kernels/types/state_geometry.h"
#include "models/families/llama_like.h"
#include "models/families/qwen_experts.h"

namespace octavo {
namespace {

int state_dim(const Config& config, const char* key) {
  const int dim = config.integer(key);
  if (dim % kStateDimStep != 0 || dim > kLargestStateDim) {
    config.fail(key, fmt::format("is {}; heads of a gated delta rule must be a multiple of {}, at "
                                 "most {}",
                                 dim, kStateDimStep, kLargestStateDim));
  }
  return dim;
}

GatedDeltaPlan plan_delta(const Config& config) {
  GatedDeltaPlan plan;
  plan.key_heads = config.integer("linear_num_key_heads", 1, 4096);
  plan.value_heads = config.integer("linear_num_value_heads", 1, 4096);
  if (plan.value_heads % plan.key_heads != 0) {
    config.fail("linear_num_key_heads", fmt::format("is {}, which does not divide {} value heads",
                                                    plan.key_heads, plan.value_heads));
  }
  plan.k_dim = state_dim(config, "linear_key_head_dim");
  plan.v_dim = state_dim(config, "linear_value_head_dim");
  plan.conv_kernel = config.integer("linear_conv_kernel_dim", 2, kLargestConvRows + 1);
  return plan;
}

// By layer: true for full attention.
std::vector<bool> attention_layers(const Config& config, size_t layers) {
  const auto interval = static_cast<size_t>(config.integer_or("full_attention_interval", 4, 1));
  std::vector<bool> full = layers_of_type(config, layers, "full_attention", "linear_attention");
  for (size_t i = full.size(); i < layers; ++i) full.push_back((i + 1) % interval == 0);
  return full;
}

void refuse_unknown(const Config& config) {
  if (const auto type = config.text_or("output_gate_type", "swish"); type != "swish") {
    config.fail("output_gate_type", fmt::format("is \"{}\"; only swish is supported", type));
  }
  if (const auto type = config.text_or("mamba_ssm_dtype", "float32"); type != "float32") {
    config.fail("mamba_ssm_dtype", fmt::format("is \"{}\"; states are kept in float32", type));
  }
}

// The config of a mixture may have no intermediate_size; then no layer may be dense.
void place_experts(const Config& config, DecoderPlan& plan) {
  if (config.integer_or("num_experts", 0) > 0) {
    MoePlan experts = plan_qwen_experts(config);
    experts.choice.renormalize = config.boolean_or("norm_topk_prob", true);
    place_qwen_experts(config, experts, plan);
  } else {
    config.disregard({"num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
                      "shared_expert_intermediate_size", "decoder_sparse_step", "mlp_only_layers"});
  }
  for (const auto& layer : plan.layers) {
    if (layer.moe() == nullptr && layer.mlp().intermediate == 0)
      config.fail("intermediate_size", "is missing");
  }
}

}  // namespace

DecoderPlan plan_qwen_hybrid(const Config& config, const char* family) {
  refuse_unknown(config);
  DecoderPlan plan = plan_llama_like(config, family);
  plan.norm_offset = 1;
  plan.mlx_adds_norm_offset = true;
  const int head_dim = plan.layers.front().attention().head_dim;
  plan.ropes = {plan_rope(config, rotated_dims(config, head_dim, 0.25))};
  const bool bias = config.boolean_or("attention_bias", false);
  const GatedDeltaPlan delta = plan_delta(config);
  const std::vector<bool> full = attention_layers(config, plan.layers.size());
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    LayerPlan& layer = plan.layers[i];
    if (!full[i]) {
      layer.mixer = delta;
      layer.mixer_name = "linear_attn";
      continue;
    }
    AttentionPlan& attention = layer.attention();
    attention.qk_norm = true;
    attention.qkv_bias = bias;
    attention.output_bias = bias;
    attention.output_gate = config.boolean_or("attn_output_gate", true);
  }
  place_experts(config, plan);
  return plan;
}

}  // namespace octavo
