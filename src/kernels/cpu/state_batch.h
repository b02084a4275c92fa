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
  const int32_t* table = nullptr;         // [S, table_columns], see kernels/state_pages.h
  int64_t table_columns = 0;
  int64_t sequences = 0;
  std::byte* pages = nullptr;
  int64_t page_count = 0;
  int64_t page_stride = 0;
  StateGeometry geometry;

  // The rows of a sequence between two of its states: all of them, or one if the table lists a
  // destination for each row.
  int64_t parts(int64_t sequence) const;
  int64_t part_begin(int64_t sequence, int64_t part) const { return cu_seqlens_q[sequence] + part; }
  int64_t part_end(int64_t sequence, int64_t part) const {
    return parts(sequence) == 1 ? cu_seqlens_q[sequence + 1] : part_begin(sequence, part) + 1;
  }

  // The states before and after a part; parts must be computed in order. Aborts if a page does not
  // exist.
  StateBlock head(int64_t sequence, int64_t head, int64_t part) const;
  StateBlock unit(int64_t sequence, int64_t unit, int64_t part) const;

  // A head of one sequence.
  struct Head {
    int64_t sequence;
    int64_t head;
  };
  // Every head of every sequence with rows, the longest sequences first, so that threads finish
  // together.
  std::vector<Head> heads() const;
  // Calls run(StateItem) for each part of a head's rows, in order.
  template <typename Run>
  void each_part(const Head& of, const Run& run) const {
    for (int64_t part = 0; part < parts(of.sequence); ++part) {
      const StateBlock block = head(of.sequence, of.head, part);
      run(StateItem{.head = of.head,
                    .row_begin = part_begin(of.sequence, part),
                    .row_end = part_end(of.sequence, part),
                    .from = reinterpret_cast<const float*>(block.from),
                    .to = reinterpret_cast<float*>(block.to)});
    }
  }

 private:
  StateBlock block(int64_t sequence, int64_t part, int64_t column, int64_t offset) const;
};

}  // namespace octavo::cpu
