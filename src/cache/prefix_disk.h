// prefix_disk.h - the engine's side of the disk tier: saves pages of completed steps and restores
// prefixes. No MLX. Engine thread only.
//
// Bytes are copied out of and into pages between steps; another thread accesses the disk. Restored
// pages are ordinary cached pages, unreferenced until a sequence reuses them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/disk_tier.h"
#include "cache/page_memory.h"
#include "cache/prefix_cache.h"

namespace octavo {

// A prefix being restored. Owned by the sequences that wait for it; cancelled when all release it.
class PrefixRestore {
 public:
  PrefixRestore(PrefixIndex& index, int from, int to) : from_(from), to_(to), index_(index) {}
  ~PrefixRestore();
  PrefixRestore(const PrefixRestore&) = delete;
  PrefixRestore& operator=(const PrefixRestore&) = delete;

  // True if no more pages will arrive: complete, failed or timed out.
  bool done() const { return done_; }
  int from() const { return from_; }  // tokens in memory when it started
  int to() const { return to_; }      // tokens in memory when complete

 private:
  friend class PrefixDisk;
  struct Target {
    PageKey key;
    NodeId node;
  };

  int from_;
  int to_;
  PrefixIndex& index_;
  NodeId tip_ = kNoNode;         // pinned, which also keeps all nodes before it
  std::vector<Target> targets_;  // in the order of the read's keys; those of a snapshot come last
  size_t arrived_ = 0;
  std::vector<DiskTier::Bytes> snapshot_;  // pages received so far
  std::shared_ptr<DiskTier::Read> read_;
  std::chrono::steady_clock::time_point last_arrival_ = std::chrono::steady_clock::now();
  bool done_ = false;
};

class PrefixDisk {
 public:
  // All must outlive this object.
  PrefixDisk(PrefixCache& prefixes, DiskTier& tier, PageMemory& memory);

  struct Page {
    PageKey key;
    std::optional<PageKey> parent;          // the previous page of the same group
    PageId page;                            // written by a completed step
    bool common = false;                    // of the common namespace
    bool computed = true;                   // false: taken from the cache, perhaps a peer's
    std::optional<CachedBlock> block = {};  // if the prefix cache is observed
  };
  // Saves pages that are not on disk yet, in order. False if some were not accepted because too
  // many are waiting.
  bool save(std::span<const Page> pages);
  // Saves all pages of a snapshot, or none. `block`: the last block before it, in its namespace.
  void save_snapshot(const BlockHash& block, std::span<const PageId> pages, bool common);

  // `blocks`: of a sequence, from the first on. Starts restoring what is on disk after the part in
  // memory. Null if there is nothing to restore or the pool has too few pages.
  std::shared_ptr<PrefixRestore> restore(std::span<const BlockKey> blocks);
  // Copies arrived pages into the pool, and ends restores that have timed out.
  void take_arrivals();
  // Once after a page of another process was found to be wrong: the prefix cache is to be cleared.
  bool take_refuted() { return tier_.may_have_unproven() && tier_.take_refuted(); }
  // Counts tokens that a sequence reused thanks to the disk.
  void count_restored(int tokens) { restored_tokens_ += static_cast<uint64_t>(tokens); }

  void clear();
  DiskStats stats() const;

 private:
  struct Reach;
  class Places;

  Reach reach_of(std::span<const BlockKey> blocks) const;
  static std::vector<PageKey> keys_of(const Reach& reach);
  void begin(PrefixRestore& restore, std::span<const BlockKey> blocks, const Reach& reach);
  // False if the pool has no page for it.
  bool install(PrefixRestore& restore, DiskTier::Arrival& arrival);
  bool install_snapshot(PrefixRestore& restore, NodeId node);

  PrefixCache& prefixes_;
  DiskTier& tier_;
  PageMemory& memory_;
  std::vector<std::weak_ptr<PrefixRestore>> restores_;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
  uint64_t restored_tokens_ = 0;
};

}  // namespace octavo
