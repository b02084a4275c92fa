// Llama and SmolLM2; also Mistral and Mixtral, which the converter writes as llama: the window and
// the experts tell them apart.
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

void tell_mistral(GgufReader&, nlohmann::json& config) {
  if (config.contains("sliding_window")) config["model_type"] = "mistral";
  const auto experts = config.find("num_local_experts");
  if (experts != config.end() && *experts != 0) config["model_type"] = "mixtral";
}

}  // namespace

GgufArchitecture gguf_llama() {
  return {.name = "llama",
          .model_type = "llama",
          .keys = {{"attention.sliding_window", "sliding_window"},
                   {"expert_count", "num_local_experts"},
                   {"expert_used_count", "num_experts_per_tok"}},
          .names = {{"block_sparse_moe.gate.", "ffn_gate_inp."},
                    {"block_sparse_moe.switch_mlp.gate_proj.", "ffn_gate_exps."},
                    {"block_sparse_moe.switch_mlp.up_proj.", "ffn_up_exps."},
                    {"block_sparse_moe.switch_mlp.down_proj.", "ffn_down_exps."}},
          .config_tensors = {"rope_freqs.weight"},
          .permutes_rope = true,
          .adapt = tell_mistral};
}

}  // namespace octavo
