// Phi-3, Phi-3.5 and Phi-4: q, k and v in one matrix, gate and up in another, and the factors of
// longrope in tensors.
#include "models/gguf/architectures.h"

namespace octavo {

GgufArchitecture gguf_phi3() {
  return {.name = "phi3",
          .model_type = "phi3",
          .keys = {{"attention.sliding_window", "sliding_window"}},
          .names = {{"self_attn.qkv_proj.", "attn_qkv."}, {"mlp.gate_up_proj.", "ffn_up."}},
          .config_tensors = {"rope_factors_long.weight", "rope_factors_short.weight"},
          .partial_rope = true};
}

}  // namespace octavo
