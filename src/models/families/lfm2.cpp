// LFM2: gated short convolutions, with attention in some layers.
#include <fmt/format.h>

#include <cmath>

#include "kernels/types/state_geometry.h"
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {
namespace {

// The width of the MLP, as checkpoints define it.
int ffn_width(const Config& config) {
  const int stated = config.has("block_ff_dim") ? config.integer("block_ff_dim")
                                                : config.integer("intermediate_size");
  if (!config.boolean_or("block_auto_adjust_ff_dim", false)) {
    config.disregard({"block_multiple_of", "block_ffn_dim_multiplier"});
    return stated;
  }
  const int multiple = config.integer("block_multiple_of");
  const double scaled =
      config.positive_or("block_ffn_dim_multiplier", 1) * std::floor(2.0 * stated / 3);
  if (scaled > (1 << 22))
    config.fail("block_ffn_dim_multiplier", fmt::format("makes the MLP {} wide", scaled));
  return (static_cast<int>(scaled) + multiple - 1) / multiple * multiple;
}

// Translates LFM2's keys to Llama's.
Config in_llamas_names(const Config& config) {
  const bool tied = config.boolean_or("tie_word_embeddings", true);
  return config.with_values({{"rms_norm_eps", config.number("norm_eps")},
                             {"intermediate_size", ffn_width(config)},
                             {"tie_word_embeddings", config.boolean_or("tie_embedding", tied)}});
}

std::vector<bool> attention_layers(const Config& config, size_t layers) {
  std::vector<bool> attends = layers_of_type(config, layers, "full_attention", "conv");
  if (!attends.empty()) {
    config.disregard({"full_attn_idxs"});
    return attends;
  }
  attends.resize(layers);
  for (int layer : config.integers("full_attn_idxs")) {
    if (layer < 0 || static_cast<size_t>(layer) >= layers)
      config.fail("full_attn_idxs", "names a layer that does not exist");
    attends[static_cast<size_t>(layer)] = true;
  }
  return attends;
}

}  // namespace

DecoderPlan plan_lfm2(const Config& config) {
  DecoderPlan plan = plan_llama_like(in_llamas_names(config), "lfm2");
  if (plan.hidden % kStateDimStep != 0)
    config.fail("hidden_size", "must be a multiple of 16 in a model with convolutions");
  const ShortConvPlan conv{.channels = plan.hidden,
                           .kernel = config.integer("conv_L_cache", 2, kLargestConvRows + 1),
                           .bias = config.boolean_or("conv_bias", false)};
  const std::vector<bool> attends = attention_layers(config, plan.layers.size());
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    LayerPlan& layer = plan.layers[i];
    layer.mixer_half.norm_in = "operator_norm";
    layer.ffn_half.norm_in = "ffn_norm";
    layer.ffn_name = "feed_forward";
    if (attends[i]) {
      layer.attention().qk_norm = true;
    } else {
      layer.mixer = conv;
      layer.mixer_name = "conv";
    }
  }
  plan.renames = {{".self_attn.o_proj", ".self_attn.out_proj"},
                  {".q_norm", ".q_layernorm"},
                  {".k_norm", ".k_layernorm"},
                  {".feed_forward.gate_proj", ".feed_forward.w1"},
                  {".feed_forward.up_proj", ".feed_forward.w3"},
                  {".feed_forward.down_proj", ".feed_forward.w2"},
                  {"model.norm.", "model.embedding_norm."}};
  return plan;
}

}  // namespace octavo
