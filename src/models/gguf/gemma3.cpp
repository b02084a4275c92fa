// Gemma 3. Norm weights are stored as 1 + w.
#include <cmath>

#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"
#include "models/gguf/rope.h"

namespace octavo {
namespace {

constexpr int kGemma3LayersOf27B = 62;

// The scale of the scores is not in the file: (hidden / heads)^-0.5 in 27B, head_dim^-0.5 in all
// others, as in llama.cpp.
void finish_gemma3(GgufReader& file, nlohmann::json& config) {
  read_gguf_window_pattern(file, config);
  const bool largest = config["num_hidden_layers"] == kGemma3LayersOf27B;
  const double heads = gguf_number(config, "num_attention_heads");
  config["query_pre_attn_scalar"] = largest && heads > 0
                                        ? std::floor(gguf_number(config, "hidden_size") / heads)
                                        : gguf_number(config, "head_dim");
  if (!config.contains("sliding_window")) file.refuse("attention.sliding_window", "is missing");
}

}  // namespace

GgufArchitecture gguf_gemma3() {
  return {.name = "gemma3",
          .model_type = "gemma3_text",
          .keys = {{"attention.sliding_window", "sliding_window"},
                   {"rope.freq_base_swa", "rope_local_base_freq"},
                   {"final_logit_softcapping", "final_logit_softcapping"}},
          .names = {{"post_attention_layernorm.", "post_attention_norm."},
                    {"pre_feedforward_layernorm.", "ffn_norm."},
                    {"post_feedforward_layernorm.", "post_ffw_norm."}},
          .includes_norm_offset = true,
          .adapt = finish_gemma3};
}

}  // namespace octavo
