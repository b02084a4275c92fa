// Gemma 2. Norm weights are stored as 1 + w.
#include <cmath>

#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"
#include "models/gguf/rope.h"

namespace octavo {
namespace {

constexpr int kGemma2LayersOf27B = 46;

// The scale of the scores is not in the file: (hidden / heads)^-0.5 in 27B, head_dim^-0.5 in all
// others, as in llama.cpp.
void finish_gemma2(GgufReader& file, nlohmann::json& config) {
  read_gguf_window_pattern(file, config);
  const bool largest = config["num_hidden_layers"] == kGemma2LayersOf27B;
  const double heads = gguf_number(config, "num_attention_heads");
  config["query_pre_attn_scalar"] = largest && heads > 0
                                        ? std::floor(gguf_number(config, "hidden_size") / heads)
                                        : gguf_number(config, "head_dim");
}

}  // namespace

GgufArchitecture gguf_gemma2() {
  return {.name = "gemma2",
          .model_type = "gemma2",
          .keys = {{"attention.sliding_window", "sliding_window"},
                   {"attn_logit_softcapping", "attn_logit_softcapping"},
                   {"final_logit_softcapping", "final_logit_softcapping"}},
          .names = {{"post_attention_layernorm.", "post_attention_norm."},
                    {"pre_feedforward_layernorm.", "ffn_norm."},
                    {"post_feedforward_layernorm.", "post_ffw_norm."}},
          .includes_norm_offset = true,
          .adapt = finish_gemma2};
}

}  // namespace octavo
