// cache_plan.h - how a model's layers share one pool of page ids. No MLX.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cache/cache_spec.h"
#include "kernels/types/state_geometry.h"

namespace octavo {

// Layers with one and the same kind of cache, one per slot. A page id given to a group is this
// group's page in every slot's buffer.
struct CacheGroup {
  SoftmaxSpec spec;
  int block_tokens = 0;     // tokens a page of this group holds
  std::vector<int> layers;  // slot -> layer; at most CachePlan::slots entries

  PageGeometry geometry() const { return spec.geometry(block_tokens); }
  // Page ids that `tokens` tokens of one sequence hold.
  int pages_for(int tokens) const { return spec.pages_for(tokens, block_tokens); }
  // The most it holds at a time on its way to `tokens` tokens, in steps of up to `step_tokens` rows
  // of which two are in flight: a window gives pages back.
  int pages_held(int tokens, int step_tokens) const;
};

// The layers with a state. They stand in rows, one layer per slot; the heads of all rows follow
// each other in a slot's pages, and behind them the convolutions, so that nothing is padded but the
// last page of each.
struct StateGroup {
  StateSpec spec;
  std::vector<int> layers;  // the i-th is in slot i % CachePlan::slots, row i / CachePlan::slots
  int rows = 0;
  int heads_per_page = 1;
  int units_per_page = 1;
  int conv_column = 0;  // pages of heads; the convolutions' follow
  int pages = 0;        // page ids that one copy of a sequence's state holds

  // Of the layer in this row.
  StateGeometry geometry(int row) const;
};

// Copies of its state that one sequence can hold at a time: what the step in flight reads, what it
// writes and keeps as a snapshot, and what the step behind it writes.
inline constexpr int kStateCopies = 3;

struct LayerPlace {
  int group;  // the state's table comes behind those of the groups
  int slot;
  int row = 0;  // of StateGroup
};

struct CachePlan {
  int slots = 0;          // buffers; buffer i serves the i-th layer of every group
  size_t page_bytes = 0;  // of one page in one buffer: the largest any group needs
  std::vector<CacheGroup> groups;
  std::optional<StateGroup> state = {};
  std::vector<LayerPlace> places;  // by layer

  int state_pages() const { return state ? state->pages : 0; }
  // Full pages of every group end together at multiples of this many tokens.
  int common_tokens() const;

  // What one page id costs over all buffers.
  size_t bytes_per_page_id() const { return page_bytes * static_cast<size_t>(slots); }
  // Page ids that `tokens` tokens of one sequence fill, over all groups, and the most that are held
  // at a time on the way there.
  int pages_for(int tokens) const;
  int pages_held(int tokens, int step_tokens) const;
  // Memory a token costs in a long sequence, padding included, and what a sequence costs whatever
  // its length.
  double bytes_per_token() const;
  size_t bytes_per_state() const {
    return static_cast<size_t>(state_pages()) * bytes_per_page_id();
  }
};

// Forms equal groups over the layers' specs: layers of one spec are split into groups of one size
// for all specs, the size that wastes the fewest slots (the larger size on a tie).
// All pages have the same bytes: those of `block_tokens` tokens of the widest spec, or of one
// head's state if that is more. A narrower spec fits more tokens into a page, in multiples of 8,
// and heads share one. All layers with a state have the same spec.
CachePlan plan_cache(std::span<const CacheSpec> layers, int block_tokens);

}  // namespace octavo
