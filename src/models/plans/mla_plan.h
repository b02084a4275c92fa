// mla_plan.h - multi-head latent attention (DeepSeek, MiniCPM3) as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "cache/cache_spec.h"
#include "models/config.h"

namespace octavo {

// Keys and values of all heads are products of one latent row per token, and one short rotated key
// is common to all heads. Only these two are kept.
struct MlaPlan {
  int heads = 0;
  int q_rank = 0;    // > 0: queries go through a normed row of this width
  int kv_rank = 0;   // of the latent
  int nope_dim = 0;  // numbers of a query and key head without position
  int rope_dim = 0;  // and with it
  int v_dim = 0;
  float scale = 0;         // on the scores
  float rank_eps = 1e-6f;  // of the norms on both ranks
  // Rope turns neighbours against each other. They are put in halves at load: scores do not depend
  // on the order of numbers that queries and keys share.
  bool rope_in_pairs = false;
  bool bias = false;  // on the products with the layer's input, and on the output
  int rope = 0;       // index into DecoderPlan::ropes

  int q_dim() const { return nope_dim + rope_dim; }
  int latent_dim() const { return kv_rank + rope_dim; }

  std::string describe() const;  // for people
  uint64_t parameters(int hidden) const;
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  // Latent rows are kept as they are: SetupError for another format.
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
  // What is decoded at load for the absorbed form, whatever format the file has it in.
  uint64_t decoded_bytes(DType dtype) const;
};

// From the keys that all such families share (q_lora_rank, kv_lora_rank, qk_nope_head_dim,
// qk_rope_head_dim, v_head_dim, attention_bias), with the scale of the whole query head. Values of
// `v_dim` where the config does not say.
MlaPlan plan_mla(const Config& config, int v_dim = 0);

}  // namespace octavo
