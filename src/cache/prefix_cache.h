// prefix_cache.h - what the sequences of one engine share: the pool, the plan and the index of
// known beginnings. No MLX. Engine thread only.
#pragma once

#include <span>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/prefix_index.h"

namespace octavo {

// A beginning whose pages are there.
struct PrefixHit {
  int tokens = 0;
  std::vector<std::vector<PageId>> pages;  // by group; kNoPage where a window has passed
  std::vector<PageId> state = {};          // a snapshot behind them, where layers have a state
};

class PrefixCache {
 public:
  // `plan` and `pool` must outlive it. Below 64 hash bits only in tests.
  PrefixCache(const CachePlan& plan, PagePool& pool, int hash_bits = 64);

  const CachePlan& plan() const { return plan_; }
  PagePool& pool() { return pool_; }
  PrefixIndex& index() { return index_; }

  // Blocks are hashed in this many tokens: every group's block is a multiple of it.
  int hash_block_tokens() const { return hash_block_tokens_; }

  // path[b]: the node of the b-th block. The longest beginning of whole pages in every group, with
  // a snapshot behind it where layers have a state, of at most `path.size()` blocks. Without the
  // state it is what the pages alone would serve.
  PrefixHit longest_hit(std::span<const NodeId> path, bool with_state = true);

  // Layers with a state can begin at a snapshot only. One is made every so many tokens: as many as
  // cost in pages what the snapshot itself costs. 0: there is no state.
  int snapshot_tokens() const { return snapshot_tokens_; }
  // The most that are kept: half of the pool.
  int most_snapshots() const;

 private:
  const CachePlan& plan_;
  PagePool& pool_;
  PrefixIndex index_;
  int hash_block_tokens_;
  int snapshot_tokens_;
};

}  // namespace octavo
