// mla_plan.h - multi-head latent attention (DeepSeek, MiniCPM3) as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "cache/cache_spec.h"
#include "models/config.h"

namespace octavo {

// Keys and values of all heads are projections of one latent row per token; a short rotated key is
// shared by all heads. Only these two are cached.
struct MlaPlan {
  int heads = 0;
  int q_rank = 0;    // > 0: queries are projected through a normed row of this width
  int kv_rank = 0;   // of the latent
  int nope_dim = 0;  // dimensions of a query and key head without rope
  int rope_dim = 0;  // and with rope
  int v_dim = 0;
  float scale = 0;         // on the scores
  float rank_eps = 1e-6f;  // of the norms of both latents
  // Rope on adjacent pairs. Reordered to halves at load: scores do not depend on the order of
  // dimensions that queries and keys share.
  bool rope_in_pairs = false;
  bool bias = false;  // on the input and output projections
  int rope = 0;       // index into DecoderPlan::ropes

  int q_dim() const { return nope_dim + rope_dim; }
  int latent_dim() const { return kv_rank + rope_dim; }

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  // Latent rows cannot be quantised: throws SetupError for another format.
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
  // With the heads of one of several ranks that divide outputs.
  MlaPlan of_rank(int ranks) const;
  // Memory of the weights that are decoded at load for the absorbed form.
  uint64_t decoded_bytes(DType dtype) const;
};

// Reads the keys that all such families share (q_lora_rank, kv_lora_rank, qk_nope_head_dim,
// qk_rope_head_dim, v_head_dim, attention_bias), with the scale of the whole query head. `v_dim` is
// the default of v_head_dim.
MlaPlan plan_mla(const Config& config, int v_dim = 0);

}  // namespace octavo
