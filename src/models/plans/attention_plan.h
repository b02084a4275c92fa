// attention_plan.h - softmax attention as data. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/cache_spec.h"

namespace octavo {

struct AttentionPlan {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0;               // on the scores; usually head_dim^-0.5
  int window = 0;                // > 0: a token sees its last `window` positions
  float soft_cap = 0;            // > 0: scores are capped
  bool qk_norm = false;          // RMS norm of q and k per head, before rope
  bool norms_rows = false;       // that norm is over all heads of a token together
  bool v_norm = false;           // RMS norm of v per head, without weights
  bool values_are_keys = false;  // no v_proj: v is k as projected
  bool fused_qkv = false;        // one matrix, "qkv_proj"
  bool qkv_bias = false;
  bool output_bias = false;
  bool sinks = false;        // a logit per query head that only the denominator sees
  bool output_gate = false;  // q_proj gives each head a gate behind its q; results * sigmoid(gate)
  std::optional<int> rope;   // index into DecoderPlan::ropes; none: no position in this layer
  bool interleaved_rope = false;  // dimension 2i turns against 2i + 1; put in order at load
  // q is multiplied by 1 + beta * log(1 + floor(position / period)).
  float position_beta = 0;
  float position_period = 1;
  std::optional<int> shares_layer;  // reads the cache of this earlier layer: q only

  std::string describe() const;  // for people
  uint64_t parameters(int hidden) const;
  // All that it makes of a row, in elements, and the widest row it multiplies with a matrix.
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
};

}  // namespace octavo
