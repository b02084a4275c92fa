// prefix_cache.h - shared by the sequences of one engine: the pool, the plan and the prefix index.
// No MLX. Engine thread only.
#pragma once

#include <span>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/prefix_index.h"

namespace octavo {

// A cached prefix.
struct PrefixHit {
  int tokens = 0;
  std::vector<std::vector<PageId>> pages;  // by group; kNoPage before the window
  std::vector<PageId> state = {};          // the snapshot at its end, if layers have a state
};

class PrefixCache {
 public:
  // `plan` and `pool` must outlive it. hash_bits < 64 only in tests.
  PrefixCache(const CachePlan& plan, PagePool& pool, int hash_bits = 64);

  // Reports changes to `observer`, which must outlive it. Only before the first sequence.
  void observe(PrefixObserver& observer);

  const CachePlan& plan() const { return plan_; }
  PagePool& pool() { return pool_; }
  PrefixIndex& index() { return index_; }

  // Tokens per hashed block; every group's block is a multiple of it.
  int hash_block_tokens() const { return hash_block_tokens_; }

  // path[b]: the node of the b-th block. Returns the longest prefix of at most `path.size()` blocks
  // that has whole pages in every group and, if layers have a state, a snapshot at its end.
  // with_state = false ignores the snapshots.
  PrefixHit longest_hit(std::span<const NodeId> path, bool with_state = true);

  // Interval of regular snapshots in tokens: the number of tokens whose pages cost as much as the
  // snapshot. 0 if there is no state.
  int snapshot_tokens() const { return snapshot_tokens_; }
  // Limit on kept snapshots: half of the pool.
  int most_snapshots() const;

 private:
  const CachePlan& plan_;
  PagePool& pool_;
  PrefixIndex index_;
  int hash_block_tokens_;
  int snapshot_tokens_;
};

}  // namespace octavo
