// Gemma 4: sandwich norms, two head sizes, a sliding window in all but every n-th layer, last
// layers that read the caches of earlier ones, full layers with V equal to K, per-layer inputs and
// layer scalars.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {
namespace {

const nlohmann::json kDefaults = {
    {"vocab_size", 262144},
    {"hidden_size", 2304},
    {"num_hidden_layers", 30},
    {"intermediate_size", 9216},
    {"num_attention_heads", 8},
    {"num_key_value_heads", 4},
    {"head_dim", 256},
    {"global_head_dim", 512},
    {"max_position_embeddings", 131072},
    {"sliding_window", 512},
    {"sliding_window_pattern", 6},
    {"num_kv_shared_layers", 0},
    {"hidden_size_per_layer_input", 256},
    {"tie_word_embeddings", true},
    {"final_logit_softcapping", nullptr},
};

void refuse_unknown(const Config& config) {
  if (config.text_or("use_bidirectional_attention", "vision") != "vision")
    config.fail("use_bidirectional_attention",
                "is set for text; only causal attention is supported");
  if (config.has("per_layer_config"))
    config.fail("per_layer_config", "is not supported; use global_head_dim and layer_types");
}

// Sets the fields specific to full-attention layers.
void make_full(const Config& config, AttentionPlan& attention) {
  attention.window = 0;
  attention.rope = 0;
  if (config.has("global_head_dim"))
    attention.head_dim = config.integer("global_head_dim", 8, 1024);
  if (attention.head_dim % 8 != 0)
    config.fail("global_head_dim",
                fmt::format("is {}; heads must be a multiple of 8", attention.head_dim));
  attention.values_are_keys = config.boolean_or("attention_k_eq_v", false);
  const int kv_heads = config.integer_or("num_global_key_value_heads", attention.kv_heads, 1, 4096);
  if (attention.values_are_keys) attention.kv_heads = kv_heads;
  if (attention.heads % attention.kv_heads != 0)
    config.fail("num_global_key_value_heads", "does not divide num_attention_heads");
}

MoePlan plan_gemma4_experts(const Config& config) {
  MoePlan plan;
  plan.choice.experts = config.integer("num_experts", 1, 1 << 16);
  plan.choice.top_k = config.integer("top_k_experts", 1, plan.choice.experts);
  plan.choice.score = ExpertScore::kSoftmaxOfChosen;
  plan.intermediate = config.integer("moe_intermediate_size", 8, 1 << 22);
  plan.activation = Activation::kGeluTanh;
  plan.names.stack = "experts.switch_glu";
  return plan;
}

void plan_layers(const Config& config, DecoderPlan& plan) {
  const std::vector<bool> sliding = sliding_layers(config, plan.layers.size(), 6);
  const size_t shared = static_cast<size_t>(config.integer("num_kv_shared_layers", 0));
  if (shared >= plan.layers.size() && shared > 0)
    config.fail("num_kv_shared_layers", "leaves no layer with a cache");
  const size_t first_shared = plan.layers.size() - shared;
  const bool doubled = config.boolean_or("use_double_wide_mlp", false);
  const bool sees_images = config.text_or("use_bidirectional_attention", "") == "vision";
  std::map<bool, int> last_of_kind;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    LayerPlan& layer = plan.layers[i];
    AttentionPlan& attention = layer.attention();
    attention.scale = 1;
    attention.qk_norm = attention.v_norm = true;
    attention.qkv_bias = attention.output_bias = config.boolean_or("attention_bias", false);
    attention.window = config.integer("sliding_window");
    attention.rope = 1;
    attention.sees_later = sees_images && sliding[i];
    if (!sliding[i]) make_full(config, attention);
    layer.scalar = "layer_scalar";
    if (config.boolean_or("enable_moe_block", false)) {
      layer.ffn = DenseAndExpertsPlan{layer.mlp(), plan_gemma4_experts(config)};
    } else {
      config.disregard({"num_experts", "top_k_experts", "moe_intermediate_size"});
    }
    if (i < first_shared) {
      last_of_kind[sliding[i]] = static_cast<int>(i);
      continue;
    }
    if (!last_of_kind.contains(sliding[i]))
      config.fail("num_kv_shared_layers", "leaves a kind of layer without a cache to share");
    attention.shares_layer = last_of_kind[sliding[i]];
    if (auto* mlp = std::get_if<MlpPlan>(&layer.ffn); mlp != nullptr && doubled)
      mlp->intermediate *= 2;
  }
}

}  // namespace

DecoderPlan plan_gemma4(const Config& given) {
  const Config config = given.with_defaults(kDefaults);
  refuse_unknown(config);
  DecoderPlan plan = plan_llama_like(
      config, "gemma4", {"hidden_activation", "gelu_pytorch_tanh", Activation::kGeluTanh});
  plan.embedding_scale = std::sqrt(static_cast<float>(plan.hidden));
  plan.final_soft_cap = static_cast<float>(config.number_or("final_logit_softcapping", 0, 0));
  set_sandwich_norms(plan);
  plan_layers(config, plan);
  const nlohmann::json proportional = {{"rope_type", "proportional"},
                                       {"partial_rotary_factor", 0.25}};
  const int full_dims = config.integer_or("global_head_dim", config.integer("head_dim"), 8, 1024);
  plan.ropes = {plan_rope_of(config, "full_attention", full_dims,
                             {1e6, Config(proportional, config.origin())}),
                plan_rope_of(config, "sliding_attention", config.integer("head_dim"), {10000})};
  if (const int width = config.integer_or("hidden_size_per_layer_input", 0, 0, 1 << 16);
      width > 0) {
    const int vocab = config.integer_or("vocab_size_per_layer_input", plan.vocab, 1, 1 << 24);
    if (vocab < plan.vocab)
      config.fail("vocab_size_per_layer_input",
                  fmt::format("is {}, below the vocabulary of {}", vocab, plan.vocab));
    plan.per_layer_input = PerLayerInputPlan{width, vocab};
  } else {
    config.disregard({"vocab_size_per_layer_input"});
  }
  return plan;
}

}  // namespace octavo
