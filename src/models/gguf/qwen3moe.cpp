// Qwen3 MoE, and the text part of Qwen3-VL MoE.
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

// True for all of these models, but not in the file.
void normalize_experts(GgufReader&, nlohmann::json& config) { config["norm_topk_prob"] = true; }

}  // namespace

GgufArchitecture gguf_qwen3moe() {
  return {.name = "qwen3moe",
          .model_type = "qwen3_moe",
          .keys = {{"expert_count", "num_experts"},
                   {"expert_used_count", "num_experts_per_tok"},
                   {"expert_feed_forward_length", "moe_intermediate_size"}},
          .adapt = normalize_experts};
}

GgufArchitecture gguf_qwen3vlmoe() {
  GgufArchitecture architecture = gguf_qwen3moe();
  architecture.name = "qwen3vlmoe";
  architecture.unused_keys = {"rope.dimension_sections", "n_deepstack_layers"};
  return architecture;
}

}  // namespace octavo
