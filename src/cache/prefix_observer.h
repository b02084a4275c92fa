// prefix_observer.h - reports what the prefix cache holds, for routers of several servers. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/token_id.h"
#include "cache/block_hash.h"
#include "cache/cache_plan.h"

namespace octavo {

enum class CacheMedium : uint8_t { kMemory, kDisk };

// The tokens of one page, or the last tokens before a snapshot of the state.
struct CachedBlock {
  int group = 0;                        // of CachePlan::groups; their number: a snapshot
  uint64_t hash = 0;                    // short_hash() of the block
  std::optional<uint64_t> parent = {};  // of the block before it
  std::vector<TokenId> tokens = {};
  ExtraKeys extra = {};
};

// Called by the engine thread about memory and by the disk tier's thread about the disk. Must
// return at once.
class PrefixObserver {
 public:
  virtual ~PrefixObserver() = default;

  // Before all others.
  virtual void begin(const CachePlan& plan) = 0;
  // May report a block again.
  virtual void stored(CachedBlock block, CacheMedium medium) = 0;
  virtual void removed(int group, uint64_t hash, CacheMedium medium) = 0;
  // Memory and disk are empty.
  virtual void cleared() = 0;
};

}  // namespace octavo
