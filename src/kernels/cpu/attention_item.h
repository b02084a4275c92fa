// attention_item.h - one piece of paged attention. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/page_layout.h"
#include "kernels/types/attention_options.h"

namespace octavo::cpu {

// Keys per partial result, at absolute positions. Partials are folded in index order.
inline constexpr int64_t kSplitTokens = 256;

// Shared by all pieces of one call.
struct AttentionJob {
  const void* q = nullptr;  // [T, q_heads, k_dim]
  void* out = nullptr;      // [T, q_heads, v_dim]
  DType dtype = DType::kFloat32;
  int64_t q_heads = 0;
  AttentionOptionsWith<const float*> options;
  PageLayout layout;
  const std::byte* pages = nullptr;
  int64_t page_stride = 0;
  const int32_t* last_visible = nullptr;  // [T], or null: every row's own position
};

// Some rows of one sequence against one KV head, with all or some of the query heads that share it.
// A column is one (row, query head) pair; the heads of a row are adjacent.
struct AttentionPiece {
  const AttentionJob* job = nullptr;
  const int32_t* table = nullptr;  // the sequence's pages
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t position = 0;  // of row_begin in its sequence
  int64_t kv_head = 0;
  int64_t head_begin = 0;  // query heads [head_begin, head_begin + heads)
  int64_t heads = 0;
  int64_t split_begin = 0;  // the splits of this piece
  int64_t split_end = 0;
  float* partials = nullptr;  // destination of split_begin's partial; null: fold all, write out
  // The next piece of this thread, or null: its first keys are prefetched.
  const AttentionPiece* next = nullptr;
};

}  // namespace octavo::cpu
