// batch.h - one step's work as flat host arrays. No MLX, so that whoever decides what runs needs
// none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "cache/sequence_pages.h"
#include "kernels/row_sampling.h"

namespace octavo {

// [sequences, columns]; column c of a row is the page of its sequence's c-th block, -1 past the
// last.
struct BlockTable {
  int columns = 0;
  std::vector<PageId> pages;
};

// Rows of all sequences one after the other; kernels/batch_layout.h has the meanings.
struct Batch {
  std::vector<TokenId> tokens;              // [T]
  std::vector<int32_t> positions;           // [T]
  std::vector<int32_t> cu_seqlens_q = {0};  // [S + 1]
  std::vector<int32_t> context_lens;        // [S]
  std::vector<BlockTable> block_tables;     // by cache group
  std::vector<int32_t> logit_rows;          // rows whose logits are wanted
  std::vector<RowSampling> sampling;        // one per logit row

  int sequences() const { return static_cast<int>(context_lens.size()); }
};

// Collects the rows of a step.
class BatchBuilder {
 public:
  explicit BatchBuilder(int groups);

  // Rows for `tokens`, which stand at [start, start + tokens.size()) of their sequence and whose
  // pages `pages` already has. Returns the index of the first of them.
  int add_sequence(std::span<const TokenId> tokens, int start, const SequencePages& pages);
  // Draw a token from this row's logits.
  void sample_row(int row, const RowSampling& sampling);
  // Only the row's logits are wanted.
  void want_logits(int row);

  Batch build();

 private:
  Batch batch_;
  std::vector<std::vector<std::vector<PageId>>> tables_;  // by group, by sequence
};

}  // namespace octavo
