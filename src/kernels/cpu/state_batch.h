// state_batch.h - a batch of sequences with layer states in pages, over raw memory. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/state_item.h"
#include "kernels/types/state_geometry.h"

namespace octavo::cpu {

// A block of state before and after the batch's rows.
struct StateBlock {
  const std::byte* from = nullptr;  // null: zeros
  std::byte* to = nullptr;          // may be `from`
};

struct StateBatch {
  const int32_t* cu_seqlens_q = nullptr;  // [S + 1]
  const int32_t* table = nullptr;         // [S, 2 * columns]
  int64_t sequences = 0;
  std::byte* pages = nullptr;
  int64_t page_count = 0;
  int64_t page_stride = 0;
  StateGeometry geometry;

  // Aborts if a page does not exist.
  StateBlock head(int64_t sequence, int64_t head) const;
  StateBlock unit(int64_t sequence, int64_t unit) const;
  // Every head of every sequence with rows, the longest sequences first, so that threads finish
  // together.
  std::vector<StateItem> head_items() const;

 private:
  StateBlock block(int64_t sequence, int64_t column, int64_t offset) const;
};

}  // namespace octavo::cpu
