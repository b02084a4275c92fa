// DeepSeek-V2, V3 and R1, Kimi-K2 and GLM-4.7-Flash. Newer files have kv_b_proj as two tensors with a
// matrix per head, as mlx-lm does, and the sizes of the heads in keys that end in _mla.
#include "models/gguf/architectures.h"
#include "models/gguf/experts.h"
#include "models/gguf/latent_attention.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// Values of expert_gating_func.
constexpr int kSoftmax = 1;
constexpr int kSigmoid = 2;

// Files of GLM-4.7-Flash do not say that they choose experts by sigmoid.
bool is_glm_flash(const Json& config) {
  return (config["num_hidden_layers"] == 47 || config["num_hidden_layers"] == 48) &&
         config["vocab_size"] == 154880;
}

void read_latent_heads(GgufReader& file, Json& config) {
  const Json keys = file.take_one("attention.key_length");
  const Json values = file.take_one("attention.value_length");
  const Json keys_mla = file.take_one("attention.key_length_mla");
  const Json values_mla = file.take_one("attention.value_length_mla");
  const Json& width = keys_mla.is_null() ? keys : keys_mla;
  if (!width.is_number()) file.refuse("attention.key_length", "is missing");
  config["qk_nope_head_dim"] = width.get<double>() - gguf_number(config, "qk_rope_head_dim");
  config["v_head_dim"] = values_mla.is_null() ? values : values_mla;
  // Absent or 0 without low-rank queries.
  if (config.value("q_lora_rank", Json(0)) == 0) config.erase("q_lora_rank");
}

// llama.cpp stores a tenth of mscale_all_dim and takes mscale to be equal to it.
void read_deepseek_rope(Json& config) {
  const auto rope = config.find("rope_scaling");
  if (rope == config.end() || !rope->contains("mscale_all_dim")) return;
  const double scale = 10 * gguf_number(*rope, "mscale_all_dim");
  (*rope)["mscale_all_dim"] = scale;
  (*rope)["mscale"] = scale;
}

void finish_deepseek2(GgufReader& file, Json& config) {
  read_latent_heads(file, config);
  read_deepseek_rope(config);
  Json score = file.take_one("expert_gating_func");
  if (score.is_null() || score == 0) score = is_glm_flash(config) ? kSigmoid : kSoftmax;
  if (score != kSoftmax && score != kSigmoid)
    file.refuse("expert_gating_func",
                "is " + score.dump() + "; softmax (1) and sigmoid (2) are supported");
  if (score == kSigmoid) {
    // The two families differ in the epsilon of the latents' norms: llama.cpp uses the model's.
    constexpr float kDeepseekEps = 1e-6f;
    const bool deepseek = static_cast<float>(gguf_number(config, "rms_norm_eps")) == kDeepseekEps;
    config["model_type"] = deepseek ? "deepseek_v3" : "glm4_moe_lite";
    read_expert_weights_norm(config);
    return;
  }
  if (config.value("n_group", Json(1)) != 1) config["topk_method"] = "group_limited_greedy";
}

}  // namespace

GgufArchitecture gguf_deepseek2() {
  GgufArchitecture architecture = gguf_latent_attention();
  architecture.name = "deepseek2";
  architecture.model_type = "deepseek_v2";
  architecture.keys.push_back({"leading_dense_block_count", "first_k_dense_replace"});
  add_deepseek_expert_keys(architecture);
  add_deepseek_expert_names(architecture);
  architecture.has_mtp = true;
  architecture.adapt = finish_deepseek2;
  return architecture;
}

}  // namespace octavo
