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
  float scale = 0;       // on the scores; usually head_dim^-0.5
  int window = 0;        // > 0: a token sees its last `window` positions
  float soft_cap = 0;    // > 0: scores are capped
  bool qk_norm = false;  // RMS norm of q and k per head, before rope
  bool qkv_bias = false;
  bool output_bias = false;
  bool output_gate = false;  // q_proj gives each head a gate behind its q; results * sigmoid(gate)
  std::optional<int> rope;   // index into DecoderPlan::ropes; none: no position in this layer

  std::string describe() const;  // for people
  uint64_t parameters(int hidden) const;
  // All that it makes of a row, in elements, and the widest row it multiplies with a matrix.
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
};

}  // namespace octavo
