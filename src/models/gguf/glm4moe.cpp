// GLM-4.5, 4.6 and 4.7. The multi-token prediction layer is not loaded.
#include "models/gguf/architectures.h"
#include "models/gguf/experts.h"

namespace octavo {
namespace {

void finish_glm4moe(GgufReader& file, nlohmann::json& config) {
  require_sigmoid_experts(file);
  read_expert_weights_norm(config);
  config["use_qk_norm"] =
      file.any_layer_has("attn_q_norm.weight", config["num_hidden_layers"].get<size_t>());
}

}  // namespace

GgufArchitecture gguf_glm4moe() {
  GgufArchitecture architecture = {.name = "glm4moe",
                                   .model_type = "glm4_moe",
                                   .keys = {{"leading_dense_block_count", "first_k_dense_replace"}},
                                   .names = {{"post_attention_layernorm.", "post_attention_norm."}},
                                   .partial_rope = true,
                                   .has_mtp = true,
                                   .adapt = finish_glm4moe};
  add_deepseek_expert_keys(architecture);
  add_deepseek_expert_names(architecture);
  return architecture;
}

}  // namespace octavo
