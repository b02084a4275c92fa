#include "engine/batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

BatchBuilder::BatchBuilder(int groups) : tables_(static_cast<size_t>(groups)) {}

int BatchBuilder::add_sequence(std::span<const TokenId> tokens, int start,
                               const SequencePages& pages) {
  const auto first = static_cast<int>(batch_.tokens.size());
  const auto count = static_cast<int>(tokens.size());
  batch_.tokens.insert(batch_.tokens.end(), tokens.begin(), tokens.end());
  for (int i = 0; i < count; ++i) batch_.positions.push_back(start + i);
  batch_.cu_seqlens_q.push_back(first + count);
  batch_.context_lens.push_back(start + count);
  for (size_t g = 0; g < tables_.size(); ++g) {
    const auto table = pages.table(static_cast<int>(g));
    tables_[g].emplace_back(table.begin(), table.end());
  }
  return first;
}

void BatchBuilder::sample_row(int row, const RowSampling& sampling) {
  batch_.logit_rows.push_back(row);
  batch_.sampling.push_back(sampling);
}

void BatchBuilder::want_logits(int row) { batch_.logit_rows.push_back(row); }

Batch BatchBuilder::build() {
  for (const auto& group : tables_) {
    size_t columns = 0;
    for (const auto& table : group) columns = std::max(columns, table.size());
    BlockTable flat{static_cast<int>(columns), {}};
    flat.pages.reserve(group.size() * columns);
    for (const auto& table : group) {
      flat.pages.insert(flat.pages.end(), table.begin(), table.end());
      flat.pages.resize(flat.pages.size() + columns - table.size(), -1);
    }
    batch_.block_tables.push_back(std::move(flat));
  }
  return std::move(batch_);
}

}  // namespace octavo
