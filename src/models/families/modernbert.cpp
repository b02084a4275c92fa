// ModernBERT: norms before each sublayer, rope with two bases, a gated MLP, and in most layers a window
// to both sides.
#include <fmt/format.h>

#include "models/families/encoder_like.h"
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {
namespace {

void refuse_biases(const Config& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (config.boolean_or(key, false))
      config.fail(key, "is true; only matrices without biases are supported for this family");
  }
}

// By layer: true if it has a window.
std::vector<bool> local_layers(const Config& config, size_t layers) {
  const auto every =
      static_cast<size_t>(config.integer_or("global_attn_every_n_layers", 3, 1, 1 << 20));
  std::vector<bool> local = layers_of_type(config, layers, "sliding_attention", "full_attention");
  for (size_t i = local.size(); i < layers; ++i) local.push_back(i % every != 0);
  return local;
}

}  // namespace

DecoderPlan plan_modernbert(const Config& config) {
  refuse_decoder(config);
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  // Only for training, for the output matrix of pretraining, or how transformers computes.
  config.disregard({"mlp_dropout", "embedding_dropout", "initializer_cutoff_factor", "decoder_bias",
                    "sparse_prediction", "sparse_pred_ignore_index", "deterministic_flash_attn",
                    "reference_compile", "repad_logits_with_grad", "layer_norm_eps"});
  // Positions are those of rope, whatever it says: "sans_pos" in mmBERT, "absolute" in ModernBERT.
  config.disregard({"position_embedding_type"});
  // Read where they have an effect: of a model that scores (find_classifier.cpp).
  config.disregard({"classifier_pooling", "classifier_bias", "classifier_activation"});
  DecoderPlan plan = plan_encoder_frame(config, "modernbert", "hidden_activation");
  plan.norm_eps = static_cast<float>(config.number_or("norm_eps", 1e-5, 0, 1));
  plan.norm_bias = config.boolean_or("norm_bias", false);
  plan.final_norm = "final_norm";
  plan.encoder->norm = "embeddings.norm";
  const int dims = plan.layers[0].attention().head_dim;
  const auto scaling = config.object("rope_scaling");
  plan.ropes = {plan_rope_of(config, "full_attention", dims,
                             {config.number_or("global_rope_theta", 160000), scaling}),
                plan_rope_of(config, "sliding_attention", dims,
                             {config.number_or("local_rope_theta", 10000), scaling})};
  // Of the window, a half to each side.
  const int reach = config.integer_or("local_attention", 128, 2, 1 << 28) / 2;
  const std::vector<bool> local = local_layers(config, plan.layers.size());
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    LayerPlan& layer = plan.layers[i];
    AttentionPlan& attention = layer.attention();
    attention.fused_qkv = true;
    attention.rope = local[i] ? 1 : 0;
    if (local[i]) {
      attention.window = reach + 1;
      attention.window_after = reach;
    }
    layer.mlp().fused = true;
    layer.mixer_half = {i == 0 ? "" : "attn_norm", ""};  // the embedded rows already have a norm
    layer.ffn_half = {"mlp_norm", ""};
  }
  plan.renames = {{"embed_tokens", "embeddings.tok_embeddings"},
                  {"self_attn.qkv_proj", "attn.Wqkv"},
                  {"self_attn.o_proj", "attn.Wo"},
                  {"mlp.gate_up_proj", "mlp.Wi"},
                  {"mlp.down_proj", "mlp.Wo"}};
  return plan;
}

}  // namespace octavo
