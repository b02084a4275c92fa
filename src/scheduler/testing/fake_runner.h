// fake_runner.h - runs steps of the fake model: it writes and reads pages like the real runner. No MLX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "cache/page_memory.h"
#include "scheduler/drafter.h"
#include "scheduler/step_runner.h"
#include "scheduler/testing/fake_images.h"
#include "scheduler/testing/fake_model.h"

namespace octavo {

// Computes a step when it is started, or as soon as its masks are set, and returns the results in
// order.
class FakeRunner : public StepRunner, public PageMemory {
  // What a page holds: its cells of every group, then its state.
  template <typename Self>
  static auto parts_of(Self& self, PageId page) {
    const auto index = static_cast<size_t>(page);
    std::vector<decltype(std::span(self.states_))> parts;
    for (size_t g = 0; g < self.cells_.size(); ++g) {
      const auto block = static_cast<size_t>(self.model_.plan().groups[g].block_tokens);
      parts.push_back(std::span(self.cells_[g]).subspan(index * block, block));
    }
    parts.push_back(std::span(self.states_).subspan(index, 1));
    return parts;
  }

 public:
  FakeRunner(const FakeModel& model, int page_count) : model_(model) {
    for (const auto& group : model_.plan().groups) {
      cells_.emplace_back(static_cast<size_t>(page_count) *
                          static_cast<size_t>(group.block_tokens));
    }
    states_.resize(static_cast<size_t>(page_count));
  }

  bool queues_at_once(const Batch& batch) const override { return batch.rows() % 5 != 0; }

  void start(const Batch& batch) override {
    images_.check(batch);
    OCTAVO_CHECK(batch.token_types.empty() || batch.token_types.size() == batch.tokens.size());
    const bool fails = fail_starts > 0 || broken();  // steps queued after a failed one fail too
    load_adapters(batch, fails);
    batches_.push_back(batch);
    if (fails) {
      fail_starts = std::max(0, fail_starts - 1);
      ++failed_;
      if (!fails_in_order) scribble(batch);
    }
    images_.work(batch.image_work);
    image_tokens_.push_back(images_.tokens_of(batch));
    if (!broken() || fails_in_order) compute_ready();
  }

  StepResult finish() override {
    const bool front_fails = failed_ == batches_.size();
    if (fails_in_order ? front_fails : broken()) throw std::runtime_error("the fake step failed");
    if (results_.empty()) results_.push_back(compute(0));
    StepResult result = std::move(results_.front());
    results_.pop_front();
    batches_.pop_front();
    image_tokens_.pop_front();
    last_tokens_ = result.tokens;
    compute_ready();
    return result;
  }

  void drop() override {
    if (fails_in_order)
      for (const Batch& batch : batches_) scribble(batch);
    results_.clear();
    batches_.clear();
    image_tokens_.clear();
    images_.clear();
    failed_ = 0;
  }

  size_t bytes_per_page() const override {
    size_t cells = 1;
    for (const auto& group : model_.plan().groups) cells += static_cast<size_t>(group.block_tokens);
    return cells * sizeof(uint64_t);
  }
  void copy_out(PageId page, std::span<std::byte> to) const override {
    for (const auto part : parts_of(*this, page)) {
      std::memcpy(to.data(), part.data(), part.size_bytes());
      to = to.subspan(part.size_bytes());
    }
  }
  void copy_in(PageId page, std::span<const std::byte> from) override {
    for (const auto part : parts_of(*this, page)) {
      std::memcpy(part.data(), from.data(), part.size_bytes());
      from = from.subspan(part.size_bytes());
    }
  }

  // Steps in flight, oldest first.
  const std::deque<Batch>& in_flight() const { return batches_; }
  uint64_t cell(int group, PageId page, int slot) const {
    const auto block =
        static_cast<size_t>(model_.plan().groups[static_cast<size_t>(group)].block_tokens);
    return cells_[static_cast<size_t>(group)]
                 [static_cast<size_t>(page) * block + static_cast<size_t>(slot)];
  }

  // The content of a state page: the last cell.
  uint64_t state(PageId page) const { return states_[static_cast<size_t>(page)]; }

  FakeImages& images() { return images_; }

  int fail_starts = 0;  // this many of the next steps fail, leaving garbage in their pages
  // False: finish() throws as soon as any step in flight has failed. True: when it comes to a failed
  // step, after the results of all earlier ones.
  bool fails_in_order = false;

 private:
  // Adapters are written at once, so no step in flight may use the slot.
  void load_adapters(const Batch& batch, bool fails) {
    for (const AdapterLoad& load : batch.adapter_loads) {
      for (const Batch& earlier : batches_)
        OCTAVO_CHECK(std::ranges::count(earlier.adapter_slots, load.slot) == 0);
      const auto slot = static_cast<size_t>(load.slot);
      if (slot >= effects_.size()) effects_.resize(slot + 1);
      effects_[slot] = fails ? 0xdead : fake_effect(load.adapter.get());
    }
  }
  uint64_t effect_of(const Batch& batch, size_t row) const {
    const int slot = batch.adapter_slots.empty() ? -1 : batch.adapter_slots.at(row);
    return slot < 0 ? 0 : effects_.at(static_cast<size_t>(slot));
  }

  void compute_ready() {
    const auto is_set = [](const RowSampling& row) { return !row.mask || row.mask->is_set(); };
    // Failed steps are the last ones.
    while (results_.size() + failed_ < batches_.size() &&
           std::ranges::all_of(batches_[results_.size()].sampling, is_set))
      results_.push_back(compute(results_.size()));
  }
  bool broken() const { return failed_ > 0; }

  // Waits for masks.
  StepResult compute(size_t step) {
    const Batch& batch = batches_[step];
    StepResult result;
    const std::vector<TokenId> previous = results_.empty() ? last_tokens_ : results_.back().tokens;
    std::vector<TokenId> tokens = batch.tokens;
    for (size_t row = 0; row < tokens.size(); ++row) {
      const int source = batch.token_sources[row];
      if (source >= 0) tokens[row] = previous.at(static_cast<size_t>(source));
    }
    for (const auto& [row, token] : image_tokens_[step]) tokens[static_cast<size_t>(row)] = token;
    for (size_t row = 0; row < batch.token_types.size(); ++row)
      tokens[row] = fake_typed(tokens[row], batch.token_types[row]);
    write(batch, tokens);
    for (size_t i = 0; i < batch.sampling.size(); ++i) {
      const int row = batch.logit_rows[i];
      result.tokens.push_back(draw(batch, row, batch.sampling[i], previous));
      result.hashes.push_back(fake_mix(static_cast<uint64_t>(result.tokens.back()), 1));
      result.logprobs.push_back({.token = result.tokens.back(), .logprob = -1, .rank = 1});
    }
    if (!batch.next_tokens.empty()) predict(batch, tokens, result);
    for (const auto& row : batch.prompt_logprobs) {
      result.prompt_logprobs.push_back({.token = row.target,
                                        .logprob = -1,
                                        .rank = batch.positions[static_cast<size_t>(row.row)]});
    }
    result.hidden.width = kFakeWidth;
    for (const int row : batch.hidden_rows) {
      const auto values = hidden(batch, row);
      result.hidden.values.insert(result.hidden.values.end(), values.begin(), values.end());
    }
    return result;
  }

  // Predicts what the next step will draw, unless rules or a mask say otherwise.
  void predict(const Batch& batch, const std::vector<TokenId>& tokens, StepResult& result) {
    OCTAVO_CHECK(batch.next_tokens.size() == tokens.size());
    OCTAVO_CHECK(batch.next_sources.size() == tokens.size());
    each_row(batch, [&](size_t sequence, size_t row) {
      const bool last = static_cast<int>(row) + 1 == batch.cu_seqlens_q[sequence + 1];
      if (batch.next_sources[row] < 0 && !last)
        OCTAVO_CHECK(batch.next_tokens[row] == batch.tokens[row + 1] ||
                     batch.token_sources[row + 1] >= 0);
    });
    for (size_t i = 0; i < batch.sampling.size(); ++i) {
      const int row = batch.logit_rows[i];
      OCTAVO_CHECK(batch.next_sources[static_cast<size_t>(row)] == static_cast<int>(i));
      const size_t sequence = sequence_of(batch, row);
      const int length = batch.positions[static_cast<size_t>(row)] + 1;
      const TokenId drawn = result.tokens[i];
      const auto cell_of = [&](int g, int p) {
        return p < length ? place(batch, sequence, g, p)
                          : fake_cell(place(batch, sequence, g, length - 1), drawn);
      };
      result.predicted.push_back(model_.draw(length + 1, guess_sampling(batch.sampling[i], 1),
                                             fake_cell(row_state(row), drawn), {}, cell_of));
    }
  }

  uint64_t& place(const Batch& batch, size_t sequence, int group, int position) {
    const int block = model_.plan().groups[static_cast<size_t>(group)].block_tokens;
    const BlockTable& table = batch.block_tables[static_cast<size_t>(group)];
    const auto column = static_cast<size_t>(position / block);
    OCTAVO_CHECK(column < static_cast<size_t>(table.columns));
    const PageId page = table.pages[sequence * static_cast<size_t>(table.columns) + column];
    OCTAVO_CHECK(page >= 0);
    return cells_[static_cast<size_t>(group)]
                 [static_cast<size_t>(page) * static_cast<size_t>(block) +
                  static_cast<size_t>(position % block)];
  }

  template <typename Visit>  // (sequence, row)
  static void each_row(const Batch& batch, const Visit& visit) {
    for (size_t s = 0; s + 1 < batch.cu_seqlens_q.size(); ++s) {
      for (int row = batch.cu_seqlens_q[s]; row < batch.cu_seqlens_q[s + 1]; ++row)
        visit(s, static_cast<size_t>(row));
    }
  }

  // All rows write before any row reads, as in the real step.
  void write(const Batch& batch, const std::vector<TokenId>& tokens) {
    each_row(batch, [&](size_t sequence, size_t row) {
      const int p = batch.positions[row];
      for (int g = 0; g < static_cast<int>(cells_.size()); ++g) {
        const uint64_t before = p == 0 ? 0 : place(batch, sequence, g, p - 1);
        place(batch, sequence, g, p) = fake_cell(before, tokens[row], effect_of(batch, row));
      }
    });
    if (model_.plan().state) write_states(batch, tokens);
  }

  // Set 0 is the source; then follow the targets. Empty if the table has no such set.
  std::span<const PageId> state_pages(const Batch& batch, size_t sequence, size_t set) const {
    const BlockTable& table = batch.block_tables.back();
    const auto pages = static_cast<size_t>(model_.plan().state_pages());
    const auto columns = static_cast<size_t>(table.columns);
    if ((set + 1) * pages > columns) return {};
    const auto found = std::span(table.pages).subspan(sequence * columns + set * pages, pages);
    return set > 1 && found.front() == kNoPage ? std::span<const PageId>() : found;
  }

  // (pages, row whose state they receive)
  template <typename Visit>
  void each_target(const Batch& batch, const Visit& visit) const {
    for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
      const int begin = batch.cu_seqlens_q[s];
      const int end = batch.cu_seqlens_q[s + 1];
      const bool each_row = !state_pages(batch, s, 2).empty();
      for (int row = each_row ? begin : end - 1; row < end; ++row) {
        const auto pages =
            state_pages(batch, s, each_row ? static_cast<size_t>(row - begin) + 1 : 1);
        OCTAVO_CHECK(!pages.empty());
        visit(pages, static_cast<size_t>(row));
      }
    }
  }

  // Kernels process sequences in any order, so all sources are read before a target is written.
  void write_states(const Batch& batch, const std::vector<TokenId>& tokens) {
    row_states_.assign(tokens.size(), 0);
    for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
      const auto sources = state_pages(batch, s, 0);
      uint64_t state = sources[0] == kNoPage ? 0 : states_[static_cast<size_t>(sources[0])];
      for (PageId page : sources)
        OCTAVO_CHECK(page == kNoPage ? state == 0 : this->state(page) == state);
      for (int row = batch.cu_seqlens_q[s]; row < batch.cu_seqlens_q[s + 1]; ++row) {
        const auto at = static_cast<size_t>(row);
        state = fake_cell(state, tokens[at], effect_of(batch, at));
        row_states_[static_cast<size_t>(row)] = state;
      }
    }
    each_target(batch, [&](std::span<const PageId> pages, size_t row) {
      for (PageId page : pages) states_[static_cast<size_t>(page)] = row_states_[row];
    });
  }

  void scribble(const Batch& batch) {
    each_row(batch, [&](size_t sequence, size_t row) {
      for (int g = 0; g < static_cast<int>(cells_.size()); ++g)
        place(batch, sequence, g, batch.positions[row]) = 0xdead;
    });
    if (!model_.plan().state) return;
    each_target(batch, [&](std::span<const PageId> pages, size_t) {
      for (PageId page : pages) states_[static_cast<size_t>(page)] = 0xdead;
    });
  }

  static size_t sequence_of(const Batch& batch, int row) {
    const auto found =
        std::upper_bound(batch.cu_seqlens_q.begin(), batch.cu_seqlens_q.end(), row) - 1;
    return static_cast<size_t>(found - batch.cu_seqlens_q.begin());
  }
  uint64_t row_state(int row) const {
    return row_states_.empty() ? 0 : row_states_[static_cast<size_t>(row)];
  }

  static std::vector<TokenId> history_of(const RowHistory& history,
                                         const std::vector<TokenId>& previous) {
    if (history.log == nullptr) return {};
    const auto known = history.log->first(history.known);
    std::vector<TokenId> tokens(known.begin(), known.end());
    if (history.pending >= 0) tokens.push_back(previous.at(static_cast<size_t>(history.pending)));
    for (int i = 0; i < history.assumed_count; ++i)
      tokens.push_back(history.assumed->at(static_cast<size_t>(i)));
    return tokens;
  }

  TokenId draw(const Batch& batch, int row, const RowSampling& sampling,
               const std::vector<TokenId>& previous) {
    const size_t sequence = sequence_of(batch, row);
    const int length = batch.positions[static_cast<size_t>(row)] + 1;
    return model_.draw(length, sampling, row_state(row), history_of(sampling.history, previous),
                       [&](int g, int p) { return place(batch, sequence, g, p); });
  }

  std::vector<float> hidden(const Batch& batch, int row) {
    const size_t sequence = sequence_of(batch, row);
    const auto at = static_cast<size_t>(row);
    const int position = batch.positions[at];
    const int last = batch.last_visible.empty() ? position : batch.last_visible[at];
    return model_.hidden(position, last + 1, row_state(row),
                         [&](int g, int p) { return place(batch, sequence, g, p); });
  }

  const FakeModel& model_;
  std::vector<std::vector<uint64_t>> cells_;  // by group: [pages * block]
  std::vector<uint64_t> states_;              // by page
  std::vector<uint64_t> effects_;             // by slot of adapters
  std::vector<uint64_t> row_states_;          // after each row of the newest step
  std::deque<Batch> batches_;
  std::deque<FakeImages::Tokens> image_tokens_;  // of batches_
  FakeImages images_;
  std::deque<StepResult> results_;
  std::vector<TokenId> last_tokens_;
  size_t failed_ = 0;  // the newest of batches_
};

// True if the step needs tokens that an earlier one draws.
inline bool refers_to_earlier_step(const Batch& batch) {
  return batch.waits_for_previous ||
         std::ranges::any_of(batch.token_sources, [](int32_t source) { return source >= 0; }) ||
         std::ranges::any_of(batch.sampling,
                             [](const RowSampling& row) { return row.history.pending >= 0; });
}

}  // namespace octavo
