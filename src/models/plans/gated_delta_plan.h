// gated_delta_plan.h - linear attention with a gated delta rule (Qwen3-Next, Qwen3.5) as data. No
// MLX.
#pragma once

#include <cstdint>
#include <string>

#include "cache/cache_spec.h"

namespace octavo {

struct GatedDeltaPlan {
  int key_heads = 0;    // of q and k
  int value_heads = 0;  // a multiple of key_heads: value head h uses key head h / (value / key)
  // The file has them in another order: its value head h uses key head h % key_heads.
  bool tiled_values = false;
  int k_dim = 0;
  int v_dim = 0;
  int conv_kernel = 4;  // taps of the causal convolution over q, k and v
  // true: in_proj_qkvz and in_proj_ba, grouped by key head; false: in_proj_qkv, in_proj_z,
  // in_proj_b and in_proj_a.
  bool joined_by_head = false;

  int key_columns() const { return 2 * key_heads * k_dim; }  // of q and k
  int conv_channels() const { return 2 * key_heads * k_dim + value_heads * v_dim; }

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
};

}  // namespace octavo
