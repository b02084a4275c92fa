#include "models/gguf/qwen_hybrid.h"

#include "models/gguf/reader.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

void read_delta_heads(GgufReader& file, Json& config) {
  const double heads = file.take_number("ssm.time_step_rank");
  if (!(heads >= 1)) file.refuse("ssm.time_step_rank", "must be at least 1");
  config["linear_num_value_heads"] = heads;
  config["linear_value_head_dim"] = file.take_number("ssm.inner_size") / heads;
  const auto layers = config["num_hidden_layers"].get<size_t>();
  Json types = Json::array();
  for (const Json& recurrent : file.take_per_layer("attention.recurrent_layers", layers))
    types.push_back((recurrent == true || recurrent == 1) ? "linear_attention" : "full_attention");
  if (!types.empty()) config["layer_types"] = types;
}

}  // namespace

GgufArchitecture gguf_qwen_hybrid() {
  return {.keys = {{"ssm.conv_kernel", "linear_conv_kernel_dim"},
                   {"ssm.state_size", "linear_key_head_dim"},
                   {"ssm.group_count", "linear_num_key_heads"},
                   {"full_attention_interval", "full_attention_interval"},
                   {"expert_count", "num_experts"},
                   {"expert_used_count", "num_experts_per_tok"},
                   {"expert_feed_forward_length", "moe_intermediate_size"},
                   {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}},
          // For text all sections of a multimodal rope have the same position.
          .unused_keys = {"rope.dimension_sections"},
          .names = {{"post_attention_layernorm.", "post_attention_norm."},
                    {"linear_attn.in_proj_qkv.", "attn_qkv."},
                    {"linear_attn.in_proj_z.", "attn_gate."},
                    {"linear_attn.conv1d.", "ssm_conv1d."},
                    {"linear_attn.A_log", "ssm_a", GgufValues::kMinusExp},
                    {"linear_attn.dt_bias", "ssm_dt.bias"},
                    {"linear_attn.norm.", "ssm_norm."},
                    {"linear_attn.out_proj.", "ssm_out."},
                    {"mlp.shared_expert.gate_proj.", "ffn_gate_shexp."},
                    {"mlp.shared_expert.up_proj.", "ffn_up_shexp."},
                    {"mlp.shared_expert.down_proj.", "ffn_down_shexp."},
                    {"mlp.shared_expert_gate.", "ffn_gate_inp_shexp."}},
          .partial_rope = true,
          .includes_norm_offset = true,
          .has_mtp = true,
          .adapt = read_delta_heads};
}

}  // namespace octavo
