// attention_plan.h (metal) - how a batch's attention is cut into threadgroups. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/metal/attention_params.h"

namespace octavo::metal {

// A flat batch as the host knows it; batch_layout.h has the meanings.
struct AttentionBatch {
  std::span<const int32_t> cu_seqlens_q;
  std::span<const int32_t> context_lens;
  int32_t group;  // query heads per KV head
  int32_t kv_heads;
  int32_t window;      // 0: none
  int32_t most_tiles;  // of an item: 1, 2 or 4
  int32_t v_dim;
};

// Items of one width go into one launch.
struct AttentionWave {
  int32_t tiles;
  std::vector<AttentionItem> items;
};

// The most that the partials of a launch take; items that would need more are not cut.
inline constexpr int64_t kMostPartialBytes = int64_t{128} << 20;

struct AttentionPlan {
  std::vector<AttentionWave> waves;
  std::vector<MergeItem> merges;
  int32_t partial_tiles = 0;  // that the partials take, per KV head
};

// What is cut how changes no bit; it decides how many threadgroups there are and how often K and V
// are read.
AttentionPlan plan_attention(const AttentionBatch& batch);

// Floats of one KV head's partials.
int64_t partial_floats(const AttentionPlan& plan, int32_t v_dim);

// The widest item whose threadgroup memory suffices for heads of k_dim numbers. Throws SetupError
// when there is none.
int32_t widest_item(int32_t k_dim, int32_t element_bytes);

}  // namespace octavo::metal
