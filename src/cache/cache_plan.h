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
  std::vector<int> layers;  // slot -> layer; at most CachePlan::slots entries
};

struct LayerPlace {
  int group;
  int slot;
};

struct CachePlan {
  int block_tokens = 0;
  int slots = 0;          // buffers; buffer i serves the i-th layer of every group
  size_t page_bytes = 0;  // of one page in one buffer: the largest any group needs
  std::vector<CacheGroup> groups;
  std::vector<LayerPlace> places;  // by layer

  // What one page id costs over all buffers.
  size_t bytes_per_page_id() const { return page_bytes * static_cast<size_t>(slots); }
  // Page ids one sequence of `tokens` tokens holds, over all groups.
  int pages_for(int tokens) const;
  // Memory a token costs in a long sequence, padding included.
  double bytes_per_token() const;
};

// Forms equal groups over the layers' specs: layers of one spec are split into groups of one size
// for all specs, the size that wastes the fewest slots (the larger size on a tie).
CachePlan plan_cache(std::span<const SoftmaxSpec> layers, int block_tokens);

}  // namespace octavo
