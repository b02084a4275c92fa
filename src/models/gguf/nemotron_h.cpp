// Nemotron-H, and Nemotron 3 Nano with experts. The widths and KV heads of a layer say what it is.
#include <fmt/format.h>

#include <string>

#include "models/gguf/architectures.h"
#include "models/gguf/experts.h"
#include "models/gguf/hybrid_layers.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// A layer with a width is an MLP or experts, one with KV heads attention, one with neither Mamba-2.
void read_nemotron_layers(GgufReader& file, Json& config) {
  constexpr std::string_view kWidths = "feed_forward_length";
  const std::vector<bool> attends = read_attention_layers(file, config);
  const std::vector<Json> widths = file.take_per_layer(kWidths, attends.size());
  if (widths.empty()) file.refuse(kWidths, "is missing");
  const char wide = gguf_number(config, "n_routed_experts") > 0 ? 'E' : '-';
  std::string pattern;
  for (size_t i = 0; i < attends.size(); ++i) {
    pattern += attends[i] ? '*' : 'M';
    if (widths[i] == 0) continue;
    if (attends[i])
      file.refuse(kWidths, fmt::format("has a width for layer {}, which has attention", i));
    if (config.contains("intermediate_size") && config["intermediate_size"] != widths[i])
      file.refuse(kWidths, "differs between layers, which is not supported");
    config["intermediate_size"] = widths[i];
    pattern.back() = wide;
  }
  config["hybrid_override_pattern"] = pattern;
}

void finish_nemotron_h(GgufReader& file, Json& config) {
  const auto layers = config["num_hidden_layers"].get<size_t>();
  read_nemotron_layers(file, config);
  require_sigmoid_experts(file);
  read_expert_weights_norm(config);
  config.erase("partial_rotary_factor");  // there is no rope
  config["layer_norm_epsilon"] = config["rms_norm_eps"];
  config["mamba_head_dim"] = read_mamba_head_dim(file);
  config["use_conv_bias"] = file.any_layer_has("ssm_conv1d.bias", layers);
  config["mlp_bias"] = file.any_layer_has("ffn_up.bias", layers);
}

}  // namespace

GgufArchitecture gguf_nemotron_h() {
  return {.name = "nemotron_h",
          .model_type = "nemotron_h",
          .keys = {{"ssm.conv_kernel", "conv_kernel"},
                   {"ssm.state_size", "ssm_state_size"},
                   {"ssm.group_count", "n_groups"},
                   {"ssm.time_step_rank", "mamba_num_heads"}},
          .own_keys = {"attention.head_count_kv", "feed_forward_length"},
          .unused_keys = {"attention.layer_norm_epsilon"},  // of the multi-token prediction layer
          .names = {{"norm.", "attn_norm."},
                    {"mixer.q_proj.", "attn_q."},
                    {"mixer.k_proj.", "attn_k."},
                    {"mixer.v_proj.", "attn_v."},
                    {"mixer.o_proj.", "attn_output."},
                    {"mixer.in_proj.", "ssm_in."},
                    {"mixer.conv1d.", "ssm_conv1d."},
                    {"mixer.A_log", "ssm_a", GgufValues::kMinusExp},
                    {"mixer.dt_bias", "ssm_dt.bias"},
                    {"mixer.D", "ssm_d"},
                    {"mixer.norm.", "ssm_norm."},
                    {"mixer.out_proj.", "ssm_out."},
                    {"mixer.up_proj.", "ffn_up."},
                    {"mixer.down_proj.", "ffn_down."}},
          .permutes_rope = true,
          .partial_rope = true,  // files have a rope.dimension_count that is not the head's size
          .adapt = finish_nemotron_h};
}

GgufArchitecture gguf_nemotron_h_moe() {
  GgufArchitecture architecture = gguf_nemotron_h();
  architecture.name = "nemotron_h_moe";
  add_deepseek_expert_keys(architecture);
  architecture.keys.push_back(
      {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"});
  for (const GgufName& name :
       {GgufName{"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
        GgufName{"mixer.gate.", "ffn_gate_inp."}, GgufName{"mixer.switch_mlp.fc1.", "ffn_up_exps."},
        GgufName{"mixer.switch_mlp.fc2.", "ffn_down_exps."},
        GgufName{"mixer.shared_experts.up_proj.", "ffn_up_shexp."},
        GgufName{"mixer.shared_experts.down_proj.", "ffn_down_shexp."}})
    architecture.names.push_back(name);
  architecture.has_mtp = true;
  return architecture;
}

}  // namespace octavo
