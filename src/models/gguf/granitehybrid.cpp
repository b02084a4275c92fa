// Granite 4 hybrids: Granite's scales, Mamba-2 in the layers without KV heads, and experts or a
// dense MLP.
#include <cmath>

#include "models/gguf/architectures.h"
#include "models/gguf/hybrid_layers.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

void read_granite_mamba(GgufReader& file, Json& config) {
  config["mamba_d_head"] = read_mamba_head_dim(file);
  const double hidden = gguf_number(config, "hidden_size");
  if (!(hidden >= 1)) file.refuse("embedding_length", "must be at least 1");
  config["mamba_expand"] = file.take_number("ssm.inner_size") / hidden;
  config["mamba_conv_bias"] =
      file.any_layer_has("ssm_conv1d.bias", config["num_hidden_layers"].get<size_t>());
  // llama.cpp normalises each group by itself, the original model all of them together.
  if (config.value("mamba_n_groups", Json(1)) != 1)
    file.refuse("ssm.group_count", "must be 1 for this architecture");
}

void finish_granitehybrid(GgufReader& file, Json& config) {
  Json types = Json::array();
  for (const bool attends : read_attention_layers(file, config))
    types.push_back(attends ? "attention" : "mamba");
  config["layer_types"] = types;
  read_granite_mamba(file, config);
  // In this architecture the key means "has rope".
  const bool rope = file.take("rope.scaling.finetuned") != Json(false);
  config["position_embedding_type"] = rope ? "rope" : "nope";
  if (!config.contains("attention_multiplier"))
    config["attention_multiplier"] = 1 / std::sqrt(gguf_number(config, "head_dim"));
  if (config.value("num_local_experts", Json(0)) == 0)
    config["shared_intermediate_size"] = config["intermediate_size"];
}

}  // namespace

GgufArchitecture gguf_granitehybrid() {
  return {.name = "granitehybrid",
          .model_type = "granitemoehybrid",
          .keys = {{"attention.scale", "attention_multiplier"},
                   {"embedding_scale", "embedding_multiplier"},
                   {"residual_scale", "residual_multiplier"},
                   {"logit_scale", "logits_scaling"},
                   {"expert_count", "num_local_experts"},
                   {"expert_used_count", "num_experts_per_tok"},
                   {"expert_shared_feed_forward_length", "shared_intermediate_size"},
                   {"ssm.conv_kernel", "mamba_d_conv"},
                   {"ssm.state_size", "mamba_d_state"},
                   {"ssm.group_count", "mamba_n_groups"},
                   {"ssm.time_step_rank", "mamba_n_heads"}},
          .own_keys = {"attention.head_count_kv"},
          .names = {{"mamba.in_proj.", "ssm_in."},
                    {"mamba.conv1d.", "ssm_conv1d."},
                    {"mamba.A_log", "ssm_a", GgufValues::kMinusExp},
                    {"mamba.dt_bias", "ssm_dt.bias"},
                    {"mamba.D", "ssm_d"},
                    {"mamba.norm.", "ssm_norm."},
                    {"mamba.out_proj.", "ssm_out."},
                    {"block_sparse_moe.router.layer.", "ffn_gate_inp."},
                    {"block_sparse_moe.switch_mlp.gate_proj.", "ffn_gate_exps."},
                    {"block_sparse_moe.switch_mlp.up_proj.", "ffn_up_exps."},
                    {"block_sparse_moe.switch_mlp.down_proj.", "ffn_down_exps."},
                    {"block_sparse_moe.shared_mlp.gate_proj.", "ffn_gate_shexp."},
                    {"block_sparse_moe.shared_mlp.up_proj.", "ffn_up_shexp."},
                    {"block_sparse_moe.shared_mlp.down_proj.", "ffn_down_shexp."}},
          .permutes_rope = true,
          .adapt = finish_granitehybrid};
}

}  // namespace octavo
