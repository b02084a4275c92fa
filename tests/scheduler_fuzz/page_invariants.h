// page_invariants.h - checks the invariants of pool, prefix index and steps in flight after every
// operation; aborts on a violation. No MLX.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cache/prefix_cache.h"
#include "scheduler/testing/fake_runner.h"

namespace octavo {

class PageInvariants {
 public:
  // All arguments must outlive it. `effects`: fake_effect() of the adapters by the namespace of their
  // prefixes; others have none. `seen`: the tokens of a block as the fake model sees them, if that differs.
  using Seen = std::function<std::vector<TokenId>(std::span<const TokenId>, const ExtraKeys&)>;
  PageInvariants(const CachePlan& plan, PagePool& pool, PrefixCache& prefixes,
                 const FakeRunner& runner, std::map<CacheNamespace, uint64_t> effects = {},
                 Seen seen = nullptr)
      : plan_(plan),
        pool_(pool),
        prefixes_(prefixes),
        runner_(runner),
        effects_(std::move(effects)),
        seen_(std::move(seen)) {}

  void check() {
    check_states();
    check_in_flight();
    for (size_t g = 0; g < plan_.groups.size(); ++g) check_order(g);
    if (plan_.state) check_order_of_states();
    check_index();
  }

 private:
  // Each page is in one state, and the sums match.
  void check_states() {
    int free = 0;
    int cached = 0;
    for (PageId page = 0; page < pool_.page_count(); ++page) {
      const PageState state = pool_.state(page);
      free += state == PageState::kFree;
      cached += state == PageState::kCached;
      OCTAVO_CHECK((state == PageState::kCached) <= pool_.is_kept(page));
      OCTAVO_CHECK(pool_.is_kept(page) == (prefixes_.index().node_of(page) != kNoNode));
    }
    OCTAVO_CHECK(free == pool_.free_pages() && cached == pool_.cached_pages());
  }

  // No step in flight uses a free page. Within a step, only one sequence writes a page. A shared
  // page is not written, except by the steps that fill it.
  void check_in_flight() {
    std::set<PageId> written, filled;
    for (const Batch& batch : runner_.in_flight()) {
      for (size_t g = 0; g < plan_.groups.size(); ++g) check_tables(batch, g, written, filled);
      if (plan_.state) check_state_table(batch);
    }
    for (PageId page : written) OCTAVO_CHECK(pool_.references(page) == 1 || filled.contains(page));
  }

  void check_tables(const Batch& batch, size_t group, std::set<PageId>& written,
                    std::set<PageId>& filled) {
    const BlockTable& table = batch.block_tables[group];
    const int block = plan_.groups[group].block_tokens;
    const int window = plan_.groups[group].spec.window;
    std::set<PageId> writers;
    for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
      const int end = batch.context_lens[s];
      const int start = end - (batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s]);
      const int first = window > 0 ? std::max(0, start - window + 1) : 0;
      for (int column = first / block; column <= (end - 1) / block; ++column) {
        const PageId page =
            table.pages[s * static_cast<size_t>(table.columns) + static_cast<size_t>(column)];
        OCTAVO_CHECK(page >= 0 && pool_.references(page) > 0);
        if ((column + 1) * block <= start) continue;
        OCTAVO_CHECK(writers.insert(page).second);
        written.insert(page);
        if ((column + 1) * block <= end) filled.insert(page);
      }
    }
  }

  // Every state page is held. A page that a sequence writes is neither read nor written by another
  // sequence of the same step, and has no other holder unless it is the newest of its sequence and
  // kept.
  void check_state_table(const Batch& batch) {
    const BlockTable& table = batch.block_tables.back();
    const auto columns = static_cast<size_t>(table.columns);
    const auto pages = static_cast<size_t>(plan_.state_pages());
    std::map<PageId, size_t> writers;
    for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
      for (size_t i = pages; i < columns; ++i) {
        const PageId page = table.pages[s * columns + i];
        // Only sequences with drafts have more than one set of targets.
        if (i >= 2 * pages && page == kNoPage) continue;
        OCTAVO_CHECK(page >= 0 && pool_.references(page) > 0);
        OCTAVO_CHECK(writers.emplace(page, s).second);
      }
    }
    for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
      const int rows = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
      const bool first = batch.context_lens[s] == rows;
      for (size_t i = 0; i < pages; ++i) {
        const PageId page = table.pages[s * columns + i];
        OCTAVO_CHECK((page == kNoPage) == first);
        if (first) continue;
        OCTAVO_CHECK(pool_.references(page) > 0);
        const auto writer = writers.find(page);
        OCTAVO_CHECK(writer == writers.end() || writer->second == s);
      }
    }
  }

  // The first and last row's positions of a sequence in a step; the last one is exclusive.
  struct Rows {
    int start;
    int end;
  };
  static Rows rows_of(const Batch& batch, size_t s) {
    const int end = batch.context_lens[s];
    return {end - (batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s]), end};
  }

  // A page of a step in flight stays the same block of the same tokens: later steps write only
  // tokens after those that earlier ones use.
  void check_order(size_t group) const {
    struct Use {
      int column;
      int end;  // position after the last token in it that a step uses
    };
    std::map<PageId, Use> uses;
    const int block = plan_.groups[group].block_tokens;
    const int window = plan_.groups[group].spec.window;
    for (const Batch& batch : runner_.in_flight()) {
      const BlockTable& table = batch.block_tables[group];
      for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
        const auto [start, end] = rows_of(batch, s);
        const int first = window > 0 ? std::max(0, start - window + 1) : 0;
        for (int column = first / block; column <= (end - 1) / block; ++column) {
          const PageId page =
              table.pages[s * static_cast<size_t>(table.columns) + static_cast<size_t>(column)];
          const int used = std::min(end, (column + 1) * block);
          const auto [use, is_new] = uses.try_emplace(page, Use{column, used});
          if (is_new) continue;
          OCTAVO_CHECK(use->second.column == column);
          if (start < used) OCTAVO_CHECK(use->second.end <= start);
          use->second.end = std::max(use->second.end, used);
        }
      }
    }
  }

  // The same for states: a step in flight reads a page only as the state at its own position, and a
  // later step writes it only in place.
  void check_order_of_states() const {
    std::map<PageId, int> position;  // of the state in the page
    const auto pages = static_cast<size_t>(plan_.state_pages());
    for (const Batch& batch : runner_.in_flight()) {
      const BlockTable& table = batch.block_tables.back();
      const auto columns = static_cast<size_t>(table.columns);
      for (size_t s = 0; s < static_cast<size_t>(batch.sequences()); ++s) {
        const auto [start, end] = rows_of(batch, s);
        const auto row = std::span(table.pages).subspan(s * columns, columns);
        const auto sources = row.first(pages);
        for (const PageId page : sources)
          if (page != kNoPage)
            OCTAVO_CHECK(position.try_emplace(page, start).first->second == start);
        const bool by_row = columns > 2 * pages && row[2 * pages] != kNoPage;
        for (size_t i = pages; i < columns && row[i] != kNoPage; ++i) {
          const bool in_place = std::ranges::count(sources, row[i]) > 0;
          OCTAVO_CHECK(in_place || !position.contains(row[i]));
          position[row[i]] = by_row ? start + static_cast<int>(i / pages) : end;
        }
      }
    }
  }

  // The pages contain what the index records: every cell matches the tokens up to it.
  void check_index() {
    if (runner_.in_flight().empty() || ++index_checks_ % 8 == 0) {
      std::map<NodeId, std::vector<uint64_t>> cells;  // of the node's tokens
      for (PageId page = 0; page < pool_.page_count(); ++page) {
        const NodeId node = prefixes_.index().node_of(page);
        if (node == kNoNode || is_written(page)) continue;
        const int group = prefixes_.index().group_of(page);
        if (group < 0) {
          OCTAVO_CHECK(std::ranges::count(prefixes_.index().snapshot(node), page) == 1);
          OCTAVO_CHECK(runner_.state(page) == cells_of(node, cells).back());
          continue;
        }
        const int block = plan_.groups[static_cast<size_t>(group)].block_tokens;
        const auto& end_cells = cells_of(node, cells);
        for (int i = 0; i < static_cast<int>(end_cells.size()); ++i) {
          const int slot = block - static_cast<int>(end_cells.size()) + i;
          OCTAVO_CHECK(runner_.cell(group, page, slot) == end_cells[static_cast<size_t>(i)]);
        }
      }
    }
  }

  // A failed step leaves invalid data until the failure is known.
  bool is_written(PageId page) const {
    for (const Batch& batch : runner_.in_flight()) {
      for (const auto& table : batch.block_tables) {
        if (std::ranges::count(table.pages, page) > 0) return true;
      }
    }
    return false;
  }

  const std::vector<uint64_t>& cells_of(NodeId node,
                                        std::map<NodeId, std::vector<uint64_t>>& known) {
    const auto found = known.find(node);
    if (found != known.end()) return found->second;
    const NodeId parent = prefixes_.index().parent(node);
    uint64_t before = parent == kRootNode ? 0 : cells_of(parent, known).back();
    const auto effect = effects_.find(prefixes_.index().space(node));
    std::vector<uint64_t> cells;
    const auto tokens = prefixes_.index().tokens(node);
    for (TokenId token : seen_ ? seen_(tokens, prefixes_.index().extra(node))
                               : std::vector<TokenId>(tokens.begin(), tokens.end())) {
      before = fake_cell(before, token, effect == effects_.end() ? 0 : effect->second);
      cells.push_back(before);
    }
    return known[node] = std::move(cells);
  }

  const CachePlan& plan_;
  PagePool& pool_;
  PrefixCache& prefixes_;
  const FakeRunner& runner_;
  std::map<CacheNamespace, uint64_t> effects_;
  Seen seen_;
  int64_t index_checks_ = 0;
};

}  // namespace octavo
