#include "models/families/llama_like.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

AttentionPlan plan_attention(const Config& config, int hidden) {
  AttentionPlan plan;
  plan.heads = config.integer("num_attention_heads", 1, 4096);
  plan.kv_heads = config.integer_or("num_key_value_heads", plan.heads, 1, 4096);
  if (plan.heads % plan.kv_heads != 0) {
    config.fail("num_key_value_heads",
                fmt::format("is {}, which does not divide {} heads", plan.kv_heads, plan.heads));
  }
  if (!config.has("head_dim") && hidden % plan.heads != 0) {
    config.fail("num_attention_heads",
                fmt::format("is {}, which does not divide hidden_size {}", plan.heads, hidden));
  }
  plan.head_dim = config.integer_or("head_dim", hidden / plan.heads, 2, 1024);
  if (plan.head_dim % 8 != 0) {
    config.fail("head_dim", fmt::format("is {}; heads must be a multiple of 8", plan.head_dim));
  }
  plan.scale = 1 / std::sqrt(static_cast<float>(plan.head_dim));
  plan.rope = 0;
  return plan;
}

}  // namespace

DecoderPlan plan_frame(const Config& config, const char* family,
                       const KnownActivation& activation) {
  DecoderPlan plan;
  plan.family = family;
  plan.vocab = config.integer("vocab_size");
  plan.hidden = config.integer("hidden_size", 8, 1 << 20);
  plan.max_context = config.integer_or("max_position_embeddings", 2048, 1, 1 << 28);
  plan.norm_eps = static_cast<float>(config.number_or("rms_norm_eps", 1e-6, 0, 1));
  plan.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  if (const std::string act = config.text_or(activation.key, activation.name);
      act != activation.name) {
    config.fail(activation.key, fmt::format("is \"{}\"; only {} is supported for this family", act,
                                            activation.name));
  }
  LayerPlan layer;
  layer.mlp().activation = activation.kind;
  // A mixture of experts without dense layers may have no intermediate_size.
  const bool mixture = config.has("moe_intermediate_size") && !config.has("intermediate_size");
  if (!mixture) layer.mlp().intermediate = config.integer("intermediate_size", 8, 1 << 22);
  const int layers = config.integer("num_hidden_layers", 1, 4096);
  plan.layers.assign(static_cast<size_t>(layers), layer);
  return plan;
}

DecoderPlan plan_llama_like(const Config& config, const char* family,
                            const KnownActivation& activation) {
  DecoderPlan plan = plan_frame(config, family, activation);
  const AttentionPlan attention = plan_attention(config, plan.hidden);
  for (auto& layer : plan.layers) layer.attention() = attention;
  plan.ropes = {plan_rope(config, rotated_dims(config, attention.head_dim))};
  return plan;
}

int rotated_dims(const Config& config, int head_dim, double part) {
  const auto rope = config.object("rope_parameters");
  const char* key = "partial_rotary_factor";
  const double of_model = config.number_or(key, part, 0, 1);
  const double factor = rope ? rope->number_or(key, of_model, 0, 1) : of_model;
  const int dims = static_cast<int>(head_dim * factor);
  if (dims < 2 || dims % 2 != 0)
    config.fail(key,
                fmt::format("is {}, which rotates {} of {} dimensions", factor, dims, head_dim));
  return dims;
}

void set_sandwich_norms(DecoderPlan& plan) {
  for (auto& layer : plan.layers) {
    layer.mixer_half = {"input_layernorm", "post_attention_layernorm"};
    layer.ffn_half = {"pre_feedforward_layernorm", "post_feedforward_layernorm"};
  }
}

std::vector<bool> layers_of_type(const Config& config, size_t layers, const char* type,
                                 const char* other) {
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && types.size() != layers)
    config.fail("layer_types", "does not have one entry per layer");
  std::vector<bool> found;
  for (const auto& each : types) {
    if (each != type && each != other) {
      config.fail("layer_types", fmt::format("has an unknown layer type \"{}\"; only {} "
                                             "and {} are supported",
                                             each, type, other));
    }
    found.push_back(each == type);
  }
  return found;
}

std::vector<bool> sliding_layers(const Config& config, size_t layers, int pattern) {
  const auto every =
      static_cast<size_t>(config.integer_or("sliding_window_pattern", pattern, 0, 1 << 20));
  std::vector<bool> sliding = layers_of_type(config, layers, "sliding_attention", "full_attention");
  for (size_t i = sliding.size(); i < layers; ++i)
    sliding.push_back(every == 0 || (i + 1) % every != 0);
  if (std::ranges::count(sliding, true) == 0) config.disregard({"sliding_window"});
  return sliding;
}

}  // namespace octavo
