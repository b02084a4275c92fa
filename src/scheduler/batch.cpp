#include "scheduler/batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

int BatchBuilder::add_sequence(std::span<const TokenId> tokens, int start,
                               const SequencePages& pages) {
  const int first = batch_.rows();
  const auto count = static_cast<int>(tokens.size());
  batch_.tokens.insert(batch_.tokens.end(), tokens.begin(), tokens.end());
  batch_.token_sources.resize(batch_.tokens.size(), -1);
  for (int i = 0; i < count; ++i) batch_.positions.push_back(start + i);
  batch_.cu_seqlens_q.push_back(first + count);
  batch_.context_lens.push_back(start + count);
  sequences_.push_back(&pages);
  if (state_.columns > 0) {
    const std::vector<PageId> table = pages.state().table();
    state_.pages.insert(state_.pages.end(), table.begin(), table.end());
  }
  return first;
}

void BatchBuilder::take_token(int row, int source) {
  batch_.token_sources[static_cast<size_t>(row)] = source;
  batch_.waits_for_previous = true;
}

int BatchBuilder::sample_row(int row, RowSampling sampling) {
  if (sampling.history.pending >= 0) batch_.waits_for_previous = true;
  batch_.logit_rows.push_back(row);
  batch_.sampling.push_back(std::move(sampling));
  return static_cast<int>(batch_.sampling.size()) - 1;
}

Batch BatchBuilder::build() {
  for (int g = 0; g < groups_; ++g) {
    size_t columns = 0;
    for (const auto* pages : sequences_) columns = std::max(columns, pages->table(g).size());
    BlockTable flat{static_cast<int>(columns), {}};
    flat.pages.reserve(sequences_.size() * columns);
    for (const auto* pages : sequences_) {
      const auto table = pages->table(g);
      flat.pages.insert(flat.pages.end(), table.begin(), table.end());
      flat.pages.resize(flat.pages.size() + columns - table.size(), kNoPage);
    }
    batch_.block_tables.push_back(std::move(flat));
  }
  if (state_.columns > 0) batch_.block_tables.push_back(std::move(state_));
  return std::move(batch_);
}

}  // namespace octavo
