// LFM2: a layer without KV heads is a convolution. The final norm is named after the embeddings.
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

void read_lfm2_layers(GgufReader& file, Json& config) {
  constexpr std::string_view kKey = "attention.head_count_kv";
  config["norm_eps"] = config["rms_norm_eps"];
  Json types = Json::array();
  for (const Json& heads : file.take_per_layer(kKey, config["num_hidden_layers"].get<size_t>())) {
    types.push_back(heads == 0 ? "conv" : "full_attention");
    if (heads == 0) continue;
    if (config.contains("num_key_value_heads") && config["num_key_value_heads"] != heads)
      file.refuse(kKey, "differs between attention layers, which is not supported");
    config["num_key_value_heads"] = heads;
  }
  config["layer_types"] = types;
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

}  // namespace octavo
