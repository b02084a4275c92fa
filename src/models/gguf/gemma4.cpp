// Gemma 4: heads of two sizes, values per layer, keys used as values where a layer has no attn_v, and
// a rope of full layers with divisors that stop most of its frequencies.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"
#include "models/gguf/rope.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// The size of a kind of head, whose three keys must agree.
Json head_size(GgufReader& file, const std::string& suffix) {
  const Json size = file.take_one("attention.key_length" + suffix);
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    const Json other = file.take_one(key + suffix);
    if (!other.is_null() && other != size)
      file.refuse(key + suffix, "differs from attention.key_length" + suffix + "; not supported");
  }
  return size;
}

// Sets `name` to the value of all layers of a kind, which must be equal.
void set_equal(GgufReader& file, const char* key, Json& config, const char* name,
               const Json& value) {
  if (config.contains(name) && config[name] != value)
    file.refuse(key, "differs between layers of a kind, which is not supported");
  config[name] = value;
}

void read_kv_heads(GgufReader& file, Json& config) {
  constexpr const char* kKey = "attention.head_count_kv";
  const Json& types = config["layer_types"];
  const std::vector<Json> heads = file.take_per_layer(kKey, types.size());
  const size_t own =
      types.size() - static_cast<size_t>(gguf_number(config, "num_kv_shared_layers"));
  for (size_t i = 0; i < heads.size(); ++i) {
    const bool full = types[i] == "full_attention";
    set_equal(file, kKey, config, full ? "num_global_key_value_heads" : "num_key_value_heads",
              heads[i]);
    if (!full || i >= own) continue;
    const bool without_v = !file.has_tensor(fmt::format("blk.{}.attn_v.weight", i));
    if (config.value("attention_k_eq_v", Json(without_v)) != Json(without_v))
      throw SetupError("some full layers have attn_v.weight and others do not; not supported");
    config["attention_k_eq_v"] = without_v;
  }
  if (!config.contains("num_key_value_heads"))
    config["num_key_value_heads"] = config["num_global_key_value_heads"];
  if (config.value("attention_k_eq_v", Json(false)) == true) return;
  if (config.contains("num_global_key_value_heads") &&
      config["num_global_key_value_heads"] != config["num_key_value_heads"])
    file.refuse(kKey, "differs between layers that have attn_v, which is not supported");
}

// Layers that share a cache may have an MLP of twice the width.
void read_widths(GgufReader& file, Json& config) {
  constexpr const char* kKey = "feed_forward_length";
  const auto layers = config["num_hidden_layers"].get<size_t>();
  const std::vector<Json> widths = file.take_per_layer(kKey, layers);
  const auto shared = static_cast<size_t>(gguf_number(config, "num_kv_shared_layers"));
  for (size_t i = 0; i < widths.size(); ++i) {
    if (!widths[i].is_number()) file.refuse(kKey, "is not a number");
    const bool doubled = i + shared >= layers && widths[i] != widths[0];
    if (doubled) config["use_double_wide_mlp"] = true;
    set_equal(file, kKey, config, "intermediate_size",
              doubled ? widths[i].get<double>() / 2 : widths[i].get<double>());
  }
}

void read_gemma4_ropes(GgufReader& file, Json& config) {
  const Json local = file.take_one("rope.freq_base_swa");
  config.erase("rope_scaling");
  config["rope_parameters"] = {
      {"full_attention",
       {{"rope_type", "factors"},
        {"factors", file.floats("rope_freqs.weight")},
        {"rope_theta", config["rope_theta"]}}},
      {"sliding_attention",
       {{"rope_type", "default"}, {"rope_theta", local.is_null() ? Json(10000.0) : local}}}};
}

void finish_gemma4(GgufReader& file, Json& config) {
  read_gguf_window_pattern(file, config);
  if (!config.contains("layer_types"))
    file.refuse("attention.sliding_window_pattern", "is not a list with an entry per layer");
  if (!config.contains("num_kv_shared_layers")) config["num_kv_shared_layers"] = 0;
  if (!config.contains("hidden_size_per_layer_input")) config["hidden_size_per_layer_input"] = 0;
  const double shared = gguf_number(config, "num_kv_shared_layers", -1);
  if (!(shared >= 0 && shared < gguf_number(config, "num_hidden_layers")))
    file.refuse("attention.shared_kv_layers", "is not below the number of layers");
  config["global_head_dim"] = head_size(file, "");
  config["head_dim"] = head_size(file, "_swa");
  read_kv_heads(file, config);
  read_widths(file, config);
  read_gemma4_ropes(file, config);
  if (file.has_tensor("per_layer_token_embd.weight"))
    config["vocab_size_per_layer_input"] = file.rows_of("per_layer_token_embd.weight");
  config["enable_moe_block"] = config.value("num_experts", Json(0)) != 0;
}

}  // namespace

GgufArchitecture gguf_gemma4() {
  return {.name = "gemma4",
          .model_type = "gemma4_text",
          .keys = {{"attention.sliding_window", "sliding_window"},
                   {"attention.shared_kv_layers", "num_kv_shared_layers"},
                   {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
                   {"final_logit_softcapping", "final_logit_softcapping"},
                   {"expert_count", "num_experts"},
                   {"expert_used_count", "top_k_experts"},
                   {"expert_feed_forward_length", "moe_intermediate_size"}},
          .own_keys = {"feed_forward_length", "attention.head_count_kv", "attention.key_length"},
          .names = {{"model.embed_tokens_per_layer.", "per_layer_token_embd."},
                    {"model.per_layer_model_projection.", "per_layer_model_proj."},
                    {"model.per_layer_projection_norm.", "per_layer_proj_norm."},
                    {"post_attention_layernorm.", "post_attention_norm."},
                    {"pre_feedforward_layernorm.", "ffn_norm."},
                    {"post_feedforward_layernorm.", "post_ffw_norm."},
                    {"post_feedforward_layernorm_1.", "post_ffw_norm_1."},
                    {"pre_feedforward_layernorm_2.", "pre_ffw_norm_2."},
                    {"post_feedforward_layernorm_2.", "post_ffw_norm_2."},
                    {"router.proj.", "ffn_gate_inp."},
                    {"router.scale", "ffn_gate_inp.scale"},
                    {"router.per_expert_scale", "ffn_down_exps.scale"},
                    {"experts.switch_glu.gate_proj.", "ffn_gate_exps."},
                    {"experts.switch_glu.up_proj.", "ffn_up_exps."},
                    {"experts.switch_glu.down_proj.", "ffn_down_exps."},
                    {"experts.gate_up_proj.", "ffn_gate_up_exps."},
                    {"experts.down_proj.", "ffn_down_exps."},
                    {"per_layer_input_gate.", "inp_gate."},
                    {"per_layer_projection.", "proj."},
                    {"post_per_layer_input_norm.", "post_norm."},
                    {"layer_scalar", "layer_output_scale.weight"}},
          .config_tensors = {"rope_freqs.weight"},
          .adapt = finish_gemma4};
}

}  // namespace octavo
