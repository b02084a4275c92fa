// cache_plan.h - how a model's layers share one pool of page ids. No MLX.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/softmax_spec.h"

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

struct LayerPlace {
  int group;
  int slot;
};

struct CachePlan {
  int slots = 0;          // buffers; buffer i serves the i-th layer of every group
  size_t page_bytes = 0;  // of one page in one buffer: the largest any group needs
  std::vector<CacheGroup> groups;
  std::vector<LayerPlace> places;  // by layer

  // What one page id costs over all buffers.
  size_t bytes_per_page_id() const { return page_bytes * static_cast<size_t>(slots); }
  // Page ids that `tokens` tokens of one sequence fill, over all groups, and the most that are held
  // at a time on the way there.
  int pages_for(int tokens) const;
  int pages_held(int tokens, int step_tokens) const;
  // Memory a token costs in a long sequence, padding included.
  double bytes_per_token() const;
};

// Forms equal groups over the layers' specs: layers of one spec are split into groups of one size
// for all specs, the size that wastes the fewest slots (the larger size on a tie).
// All pages have the same bytes: those of `block_tokens` tokens of the widest spec. A narrower one
// fits more tokens into a page, in multiples of 8.
CachePlan plan_cache(std::span<const SoftmaxSpec> layers, int block_tokens);

}  // namespace octavo
