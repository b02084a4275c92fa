#include "models/gguf/latent_attention.h"

namespace octavo {

GgufArchitecture gguf_latent_attention() {
  return {.keys = {{"attention.q_lora_rank", "q_lora_rank"},
                   {"attention.kv_lora_rank", "kv_lora_rank"},
                   {"rope.dimension_count", "qk_rope_head_dim"}},
          .own_keys = {"attention.head_count_kv", "attention.key_length"},
          // The latent is shared by all heads.
          .unused_keys = {"attention.head_count_kv"},
          .names = {{"self_attn.q_a_proj.", "attn_q_a."},
                    {"self_attn.q_a_layernorm.", "attn_q_a_norm."},
                    {"self_attn.q_b_proj.", "attn_q_b."},
                    {"self_attn.kv_a_proj_with_mqa.", "attn_kv_a_mqa."},
                    {"self_attn.kv_a_layernorm.", "attn_kv_a_norm."},
                    {"self_attn.kv_b_proj.", "attn_kv_b."},
                    {"self_attn.embed_q.", "attn_k_b."},
                    {"self_attn.unembed_out.", "attn_v_b."}}};
}

}  // namespace octavo
