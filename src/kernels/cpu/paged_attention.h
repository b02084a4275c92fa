// paged_attention.h (cpu) - attention over pages in raw memory, split over threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types/attention_options.h"
#include "kernels/types/page_geometry.h"

namespace octavo::cpu {

// A flat batch and its pages; see batch_layout.h and kernels/paged_attention.h for the fields.
struct PagedBatch {
  const int32_t* cu_seqlens_q = nullptr;
  const int32_t* context_lens = nullptr;
  const int32_t* block_tables = nullptr;
  int64_t table_columns = 0;
  int64_t sequences = 0;
  std::byte* pages = nullptr;
  int64_t page_count = 0;
  int64_t page_stride = 0;  // bytes from one page to the next
  PageGeometry geometry;
};

struct PagedAttentionArgs {
  PagedBatch batch;
  const void* q = nullptr;  // [T, q_heads, k_dim]
  void* out = nullptr;      // [T, q_heads, v_dim]
  DType dtype = DType::kFloat32;
  int64_t q_heads = 0;
  AttentionOptionsWith<const float*> options;
  const int32_t* last_visible = nullptr;  // [T], or null: every row's own position
};

// Processes keys in splits at fixed absolute positions and folds the partial results in order, in
// prefill as in decode, so a row's bits depend on its own sequence only.
void paged_attention(const PagedAttentionArgs& args);

}  // namespace octavo::cpu
