// Nomic BERT: BERT with rope in place of the table of positions, a gated MLP and few biases. The
// published config.json has GPT-2's names for the sizes.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "models/families/encoder_like.h"
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {
namespace {

constexpr auto kGpt2Keys = std::to_array<std::pair<const char*, const char*>>({
    {"n_embd", "hidden_size"},
    {"n_head", "num_attention_heads"},
    {"n_layer", "num_hidden_layers"},
    {"n_inner", "intermediate_size"},
    {"n_positions", "max_position_embeddings"},
    {"max_trained_positions", "max_position_embeddings"},  // rope is not trained for more
    {"layer_norm_epsilon", "layer_norm_eps"},
    {"rotary_emb_base", "rope_theta"},
});

void refuse_unless(const Config& config, const char* key, const nlohmann::json& usual) {
  const nlohmann::json* value = config.find(key);
  if (value != nullptr && *value != usual)
    config.fail(key, fmt::format("is {}; only {} is supported", value->dump(), usual.dump()));
}

Config with_common_keys(const Config& config) {
  for (const char* key : {"prenorm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "causal",
                          "rotary_emb_interleaved", "parallel_block", "use_rms_norm"})
    refuse_unless(config, key, false);
  refuse_unless(config, "rotary_emb_fraction", 1.0);
  refuse_unless(config, "activation_function", "swiglu");
  // Only for training, or how the model's own code computes.
  config.disregard({"attn_pdrop", "dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln",
                    "pad_vocab_size_multiple", "use_flash_attn", "use_xentropy",
                    "last_layer_subset", "parallel_block_tied_norm", "reorder_and_upcast_attn",
                    "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "summary_activation",
                    "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                    "summary_use_proj", "hidden_act"});
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [theirs, ours] : kGpt2Keys) {
    if (const nlohmann::json* value = config.find(theirs)) values[ours] = *value;
  }
  return config.with_values(values);
}

}  // namespace

DecoderPlan plan_nomic_bert(const Config& given) {
  const Config config = with_common_keys(given);
  for (const char* key : {"rotary_scaling_factor", "rotary_emb_scale_base"}) {
    if (config.has(key)) config.fail(key, "is set; only rope without scaling is supported");
  }
  DecoderPlan plan =
      plan_bert_like(config.with_values({{"hidden_act", "silu"}}), "nomic_bert", "bert");
  for (LayerPlan& layer : plan.layers) {
    AttentionPlan& attention = layer.attention();
    attention.fused_qkv = true;
    attention.qkv_bias = attention.output_bias = false;
    attention.rope = 0;
    layer.mlp().gated = true;
    layer.mlp().bias = false;
  }
  plan.encoder->positions.clear();
  plan.encoder->position_rows = 0;
  plan.ropes = {plan_rope(config, rotated_dims(config, plan.layers[0].attention().head_dim))};
  plan.renames = {{"embed_tokens", "embeddings.word_embeddings"},
                  {"embeddings.LayerNorm", "emb_ln"},
                  {"layers.", "encoder.layers."},
                  {"self_attn.qkv_proj", "attn.Wqkv"},
                  {"self_attn.o_proj", "attn.out_proj"},
                  {"post_attention_layernorm", "norm1"},
                  {"mlp.gate_proj", "mlp.fc12"},
                  {"mlp.up_proj", "mlp.fc11"},
                  {"mlp.down_proj", "mlp.fc2"},
                  {"post_feedforward_layernorm", "norm2"}};
  return plan;
}

}  // namespace octavo
