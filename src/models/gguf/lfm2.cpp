// LFM2, dense and with experts: a layer without KV heads is a convolution. The final norm is named
// after the embeddings.
#include "models/gguf/architectures.h"
#include "models/gguf/experts.h"
#include "models/gguf/hybrid_layers.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

void read_lfm2_layers(GgufReader& file, Json& config) {
  config["norm_eps"] = config["rms_norm_eps"];
  Json types = Json::array();
  for (const bool attends : read_attention_layers(file, config))
    types.push_back(attends ? "full_attention" : "conv");
  config["layer_types"] = types;
}

void finish_lfm2moe(GgufReader& file, Json& config) {
  read_lfm2_layers(file, config);
  require_sigmoid_experts(file);
  config["use_expert_bias"] =
      file.any_layer_has("exp_probs_b.bias", config["num_hidden_layers"].get<size_t>());
  if (!config.contains("num_dense_layers")) config["num_dense_layers"] = 0;
}

}  // namespace

GgufArchitecture gguf_lfm2() {
  return {.name = "lfm2",
          .model_type = "lfm2",
          .keys = {{"shortconv.l_cache", "conv_L_cache"}},
          .own_keys = {"attention.head_count_kv"},
          .names = {{"model.norm.", "token_embd_norm."},
                    {"operator_norm.", "attn_norm."},
                    {"conv.in_proj.", "shortconv.in_proj."},
                    {"conv.conv.", "shortconv.conv."},
                    {"conv.out_proj.", "shortconv.out_proj."},
                    {"feed_forward.gate_proj.", "ffn_gate."},
                    {"feed_forward.up_proj.", "ffn_up."},
                    {"feed_forward.down_proj.", "ffn_down."}},
          .adapt = read_lfm2_layers};
}

GgufArchitecture gguf_lfm2moe() {
  GgufArchitecture architecture = gguf_lfm2();
  architecture.name = "lfm2moe";
  architecture.model_type = "lfm2_moe";
  for (const GgufKey& key :
       {GgufKey{"leading_dense_block_count", "num_dense_layers"},
        GgufKey{"expert_count", "num_experts"}, GgufKey{"expert_used_count", "num_experts_per_tok"},
        GgufKey{"expert_feed_forward_length", "moe_intermediate_size"}})
    architecture.keys.push_back(key);
  for (const GgufName& name : {GgufName{"feed_forward.gate.", "ffn_gate_inp."},
                               GgufName{"feed_forward.expert_bias", "exp_probs_b.bias"},
                               GgufName{"feed_forward.switch_mlp.gate_proj.", "ffn_gate_exps."},
                               GgufName{"feed_forward.switch_mlp.up_proj.", "ffn_up_exps."},
                               GgufName{"feed_forward.switch_mlp.down_proj.", "ffn_down_exps."}})
    architecture.names.push_back(name);
  architecture.adapt = finish_lfm2moe;
  return architecture;
}

}  // namespace octavo
