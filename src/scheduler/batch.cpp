#include "scheduler/batch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

BlockTable flat_table(const std::vector<std::span<const PageId>>& tables) {
  size_t columns = 0;
  for (const auto table : tables) columns = std::max(columns, table.size());
  BlockTable flat{static_cast<int>(columns), {}};
  flat.pages.reserve(tables.size() * columns);
  for (const auto table : tables) {
    flat.pages.insert(flat.pages.end(), table.begin(), table.end());
    flat.pages.resize(flat.pages.size() + columns - table.size(), kNoPage);
  }
  return flat;
}

}  // namespace

int BatchBuilder::add_sequence(std::span<const TokenId> tokens, int start,
                               const SequencePages& pages, int adapter_slot) {
  const int first = batch_.rows();
  const auto count = static_cast<int>(tokens.size());
  batch_.tokens.insert(batch_.tokens.end(), tokens.begin(), tokens.end());
  batch_.token_sources.resize(batch_.tokens.size(), -1);
  for (int i = 0; i < count; ++i) batch_.positions.push_back(start + i);
  batch_.cu_seqlens_q.push_back(first + count);
  batch_.context_lens.push_back(start + count);
  sequences_.push_back(&pages);
  if (adapter_slot >= 0) batch_.adapter_slots.resize(static_cast<size_t>(first), -1);
  if (adapter_slot >= 0 || !batch_.adapter_slots.empty())
    batch_.adapter_slots.resize(batch_.tokens.size(), adapter_slot);
  if (has_state_) states_.push_back(pages.state().table());
  if (predicts_) {
    batch_.next_tokens.insert(batch_.next_tokens.end(), tokens.begin() + 1, tokens.end());
    batch_.next_tokens.push_back(0);
    batch_.next_sources.resize(batch_.tokens.size(), -1);
  }
  return first;
}

void BatchBuilder::see_all_rows(int second_text) {
  const auto first = static_cast<size_t>(*(batch_.cu_seqlens_q.end() - 2));
  const auto end = batch_.tokens.size();
  OCTAVO_CHECK(batch_.last_visible.size() == first && batch_.positions[first] == 0);
  batch_.last_visible.resize(end, batch_.positions.back());
  if (second_text > 0) batch_.token_types.resize(first + static_cast<size_t>(second_text), 0);
  if (!batch_.token_types.empty()) batch_.token_types.resize(end, second_text > 0 ? 1 : 0);
}

void BatchBuilder::set_next_token(int row, TokenId token) {
  if (predicts_) batch_.next_tokens[static_cast<size_t>(row)] = token;
}

void BatchBuilder::take_token(int row, int source) {
  batch_.token_sources[static_cast<size_t>(row)] = source;
  batch_.waits_for_previous = true;
}

int BatchBuilder::sample_row(int row, RowSampling sampling) {
  if (sampling.history.pending >= 0) batch_.waits_for_previous = true;
  batch_.logit_rows.push_back(row);
  batch_.sampling.push_back(std::move(sampling));
  const int entry = static_cast<int>(batch_.sampling.size()) - 1;
  if (predicts_) batch_.next_sources[static_cast<size_t>(row)] = entry;
  return entry;
}

void BatchBuilder::fill_positions() {
  const auto rows = batch_.positions.size();
  if (!ropes_.empty()) {
    for (size_t axis = 0; axis < 3; ++axis)
      batch_.rope_positions.insert(batch_.rope_positions.end(), batch_.positions.begin(),
                                   batch_.positions.end());
    for (const auto& [row, position] : ropes_)
      for (size_t axis = 0; axis < 3; ++axis)
        batch_.rope_positions[axis * rows + static_cast<size_t>(row)] = position[axis];
  }
  if (!last_visible_.empty()) batch_.last_visible = batch_.positions;
  for (const auto& [row, position] : last_visible_)
    batch_.last_visible[static_cast<size_t>(row)] = position;
}

Batch BatchBuilder::build() {
  fill_positions();
  for (int g = 0; g < groups_; ++g) {
    std::vector<std::span<const PageId>> tables;
    for (const auto* pages : sequences_) tables.push_back(pages->table(g));
    batch_.block_tables.push_back(flat_table(tables));
  }
  if (has_state_) batch_.block_tables.push_back(flat_table({states_.begin(), states_.end()}));
  return std::move(batch_);
}

}  // namespace octavo
