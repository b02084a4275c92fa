#include "models/families/encoder_like.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace octavo {
namespace {

constexpr auto kEncoderActivations = std::to_array<std::pair<const char*, Activation>>({
    {"gelu", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"silu", Activation::kSilu},
});

Activation encoder_activation(const Config& config, const char* key) {
  const std::string asked = config.text_or(key, "gelu");
  std::vector<const char*> known;
  for (const auto& [name, kind] : kEncoderActivations) {
    if (asked == name) return kind;
    known.push_back(name);
  }
  config.fail(key, fmt::format("is \"{}\"; supported are {}", asked, fmt::join(known, ", ")));
}

AttentionPlan plan_two_sided(const Config& config, int hidden) {
  AttentionPlan plan;
  plan.heads = plan.kv_heads = config.integer("num_attention_heads", 1, 4096);
  if (hidden % plan.heads != 0) {
    config.fail("num_attention_heads",
                fmt::format("is {}, which does not divide hidden_size {}", plan.heads, hidden));
  }
  plan.head_dim = hidden / plan.heads;
  if (plan.head_dim % 8 != 0 || plan.head_dim > 1024) {
    config.fail(
        "num_attention_heads",
        fmt::format("is {}, which gives heads of {} dimensions; heads must be a multiple of "
                    "8, up to 1024",
                    plan.heads, plan.head_dim));
  }
  plan.scale = 1 / std::sqrt(static_cast<float>(plan.head_dim));
  plan.sees_later = true;
  return plan;
}

void refuse_relative_positions(const Config& config) {
  constexpr const char* kKey = "position_embedding_type";
  if (const std::string kind = config.text_or(kKey, "absolute"); kind != "absolute")
    config.fail(kKey, fmt::format("is \"{}\"; only absolute is supported", kind));
}

}  // namespace

void refuse_decoder(const Config& config) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (config.boolean_or(key, false))
      config.fail(key, "is true; only encoders are supported for this family");
  }
}

DecoderPlan plan_encoder_frame(const Config& config, const char* family, const char* activation) {
  DecoderPlan plan;
  plan.family = family;
  plan.vocab = config.integer("vocab_size");
  plan.hidden = config.integer("hidden_size", 8, 1 << 20);
  plan.max_context = config.integer("max_position_embeddings", 1, 1 << 28);
  plan.norm_kind = Norm::kLayer;
  // The output matrix of pretraining is not part of the model.
  plan.tied_embeddings = true;
  plan.head_name.clear();
  config.disregard({"tie_word_embeddings"});
  LayerPlan layer;
  layer.attention() = plan_two_sided(config, plan.hidden);
  layer.mlp().activation = encoder_activation(config, activation);
  layer.mlp().intermediate = config.integer("intermediate_size", 8, 1 << 22);
  plan.layers.assign(static_cast<size_t>(config.integer("num_hidden_layers", 1, 4096)), layer);
  plan.encoder.emplace();
  return plan;
}

DecoderPlan plan_bert_like(const Config& config, const char* family, const char* prefix) {
  refuse_decoder(config);
  refuse_relative_positions(config);
  // Only for training.
  config.disregard({"hidden_dropout_prob", "attention_probs_dropout_prob"});
  DecoderPlan plan = plan_encoder_frame(config, family, "hidden_act");
  plan.norm_eps = static_cast<float>(config.number_or("layer_norm_eps", 1e-12, 0, 1));
  plan.norm_bias = true;
  plan.prefix = prefix;
  plan.final_norm.clear();
  for (LayerPlan& layer : plan.layers) {
    layer.attention().qkv_bias = layer.attention().output_bias = true;
    layer.mlp().gated = layer.mlp().squares = false;
    layer.mlp().bias = true;
    layer.mixer_half = {"", "", "post_attention_layernorm"};
    layer.ffn_half = {"", "", "post_feedforward_layernorm"};
  }
  *plan.encoder = {.positions = "embeddings.position_embeddings",
                   .first_position = 0,
                   .position_rows = plan.max_context,
                   .token_types = "embeddings.token_type_embeddings",
                   .type_rows = config.integer_or("type_vocab_size", 2, 1, 1 << 16),
                   .norm = "embeddings.LayerNorm"};
  plan.renames = {{"embed_tokens", "embeddings.word_embeddings"},
                  {"layers.", "encoder.layer."},
                  {"self_attn.q_proj", "attention.self.query"},
                  {"self_attn.k_proj", "attention.self.key"},
                  {"self_attn.v_proj", "attention.self.value"},
                  {"self_attn.o_proj", "attention.output.dense"},
                  {"post_attention_layernorm", "attention.output.LayerNorm"},
                  {"mlp.up_proj", "intermediate.dense"},
                  {"mlp.down_proj", "output.dense"},
                  {"post_feedforward_layernorm", "output.LayerNorm"},
                  // Checkpoints that were converted from TensorFlow.
                  {"LayerNorm.weight", "LayerNorm.gamma"},
                  {"LayerNorm.bias", "LayerNorm.beta"}};
  return plan;
}

}  // namespace octavo
