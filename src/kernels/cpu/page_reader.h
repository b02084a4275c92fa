// page_reader.h - finds a token's K or V inside the pages of one sequence.
#pragma once

#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/paged_attention.h"

namespace octavo::cpu {

// The page memory that holds token `position` of sequence `sequence`.
inline std::byte* page_of(const PagedBatch& batch, int64_t sequence, int64_t position) {
  const int64_t column = position / batch.geometry.block_tokens;
  OCTAVO_CHECK(column < batch.table_columns);
  const int64_t page = batch.block_tables[sequence * batch.table_columns + column];
  OCTAVO_CHECK(page >= 0 && page < batch.page_count);
  return batch.pages + page * batch.page_stride;
}

// K of (position, head) is k_dim numbers at this address; V of it v_dim numbers.
inline std::byte* k_at(const PagedBatch& batch, int64_t sequence, int64_t position, int64_t head) {
  const PageGeometry& g = batch.geometry;
  const int64_t row = position % g.block_tokens * g.kv_heads + head;
  return page_of(batch, sequence, position) +
         row * g.k_dim * static_cast<int64_t>(size_of(g.dtype));
}

inline std::byte* v_at(const PagedBatch& batch, int64_t sequence, int64_t position, int64_t head) {
  const PageGeometry& g = batch.geometry;
  const int64_t row = position % g.block_tokens * g.kv_heads + head;
  return page_of(batch, sequence, position) + static_cast<int64_t>(g.k_bytes()) +
         row * g.v_dim * static_cast<int64_t>(size_of(g.dtype));
}

}  // namespace octavo::cpu
