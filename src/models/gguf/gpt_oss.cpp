// gpt-oss. The rows of gate and up, which alternate in the original, are apart. llama.cpp rounds the
// limits of yarn, which the original does not; a GGUF file gives the results of llama.cpp.
#include "models/gguf/architectures.h"
#include "models/gguf/rope.h"

namespace octavo {

GgufArchitecture gguf_gpt_oss() {
  return {.name = "gpt-oss",
          .model_type = "gpt_oss",
          .keys = {{"attention.sliding_window", "sliding_window"},
                   {"expert_count", "num_local_experts"},
                   {"expert_used_count", "num_experts_per_tok"},
                   {"expert_feed_forward_length", "intermediate_size"}},
          .own_keys = {"feed_forward_length"},
          .unused_keys = {"feed_forward_length"},  // every layer has experts
          .names = {{"post_attention_layernorm.", "post_attention_norm."},
                    {"self_attn.sinks", "attn_sinks.weight"},
                    {"mlp.router.", "ffn_gate_inp."},
                    {"mlp.experts.gate_proj.", "ffn_gate_exps."},
                    {"mlp.experts.up_proj.", "ffn_up_exps."}},
          .adapt = read_gguf_window_pattern};
}

}  // namespace octavo
