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
  int window_after = 0;          // > 0: and of the later ones only so many; with sees_later
  float soft_cap = 0;            // > 0: scores are soft-capped
  bool qk_norm = false;          // RMS norm of q and k per head, before rope
  bool norms_rows = false;       // the norm is over all heads of a token at once
  bool v_norm = false;           // RMS norm of v per head, without weights
  bool values_are_keys = false;  // no v_proj: v is k as projected
  bool fused_qkv = false;        // one matrix, "qkv_proj"
  bool qkv_bias = false;
  bool output_bias = false;
  bool sinks = false;             // a logit per query head in the softmax denominator only
  bool output_gate = false;       // q_proj has a gate after each q; result * sigmoid(gate)
  std::optional<int> rope;        // index into DecoderPlan::ropes; unset: no rope
  bool interleaved_rope = false;  // pairs (2i, 2i + 1); reordered at load
  // q is multiplied by 1 + beta * log(1 + floor(position / period)).
  float position_beta = 0;
  float position_period = 1;
  std::optional<int> shares_layer;  // reads the cache of this earlier layer; has only q
  // Rows see later ones up to BatchLayout::last_visible: the rest of an image, or of an encoder's prompt.
  bool sees_later = false;

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  // Intermediate elements per row, and the widest row multiplied by a matrix.
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
  // With the heads of one of several ranks that divide outputs: whole groups of query heads with
  // their KV head. All heads if the norm is over all of them.
  AttentionPlan of_rank(int ranks) const;
};

}  // namespace octavo
