// GLM-4 (0414). q and k are not permuted: the model itself rotates adjacent pairs.
#include "models/gguf/architectures.h"

namespace octavo {

GgufArchitecture gguf_glm4() {
  return {.name = "glm4",
          .model_type = "glm4",
          .names = {{"post_self_attn_layernorm.", "post_attention_norm."},
                    {"post_mlp_layernorm.", "post_ffw_norm."},
                    {"mlp.gate_up_proj.", "ffn_up."}},
          .partial_rope = true,
          .has_mtp = true};
}

}  // namespace octavo
