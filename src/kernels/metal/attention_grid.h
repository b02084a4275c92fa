// attention_grid.h (metal) - divides the attention of a batch into threadgroups. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/metal/attention_params.h"

namespace octavo::metal {

// A flat batch; batch_layout.h defines the fields.
struct AttentionBatch {
  std::span<const int32_t> cu_seqlens_q;
  std::span<const int32_t> context_lens;
  std::span<const int32_t> last_visible = {};  // of each row; empty: its own position
  int32_t group;                               // query heads per KV head
  int32_t kv_heads;
  int32_t window;       // 0: none
  int32_t most_tiles;   // per item of paged_attention: 1, 2 or 4
  int32_t most_vector;  // columns per item of decode_attention; 0: all items go to paged_attention
  int32_t v_dim;
  int32_t gpu_cores;  // which items are cut depends on it, no bit of the result
};

enum class AttentionKernel : uint8_t {
  kDecode,  // decode_attention.metal
  kMatrix,  // paged_attention.metal
};

// Items of one kernel and width share a launch.
struct AttentionWave {
  AttentionKernel kernel;
  int32_t width;  // columns of an item: 4, 8, 16 or 32
  std::vector<GridItem> items;
};

// Upper bound for the partials of a launch. Items that would exceed it are not split.
inline constexpr int64_t kMostPartialBytes = int64_t{128} << 20;

struct AttentionGrid {
  std::vector<AttentionWave> waves;
  std::vector<MergeItem> merges;
  int32_t partial_tiles = 0;  // size of all partials, per KV head
};

// The division never changes a result bit. It determines the number of threadgroups and how often K
// and V are read.
AttentionGrid plan_attention_grid(const AttentionBatch& batch);

// Floats of one KV head's partials.
int64_t partial_floats(const AttentionGrid& grid, int32_t v_dim);

// Returns the tiles of the widest item of paged_attention whose memory and registers suffice for these
// heads. Throws SetupError if none fits threadgroup memory.
int32_t widest_item(int32_t k_dim, int32_t v_dim, int32_t element_bytes);

// Returns the columns of the widest item of decode_attention whose memory and registers suffice for
// these heads, or 0.
int32_t widest_decode(int32_t k_dim, int32_t v_dim);

}  // namespace octavo::metal
