// prefix_disk.h - the disk tier as the engine sees it: saves pages whose steps are done, and brings
// beginnings back into pages. No MLX. Engine thread only.
//
// Bytes are copied out of and into pages between steps; the disk itself is another thread's. Pages
// that came back are cached pages like any other: nobody holds them until a sequence begins with
// them.
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

// A beginning on its way back. Sequences that wait for it hold it; when all let go it ends.
class PrefixRestore {
 public:
  PrefixRestore(PrefixIndex& index, int from, int to) : from_(from), to_(to), index_(index) {}
  ~PrefixRestore();
  PrefixRestore(const PrefixRestore&) = delete;
  PrefixRestore& operator=(const PrefixRestore&) = delete;

  // No more will come: all of it is there, or the disk had no more or took too long.
  bool done() const { return done_; }
  int from() const { return from_; }  // tokens that were in memory when it began
  int to() const { return to_; }      // tokens there will be

 private:
  friend class PrefixDisk;
  struct Target {
    PageKey key;
    NodeId node;
  };

  int from_;
  int to_;
  PrefixIndex& index_;
  NodeId tip_ = kNoNode;         // pinned, and all before it through it
  std::vector<Target> targets_;  // in the order of the read's keys; a snapshot's come last
  size_t arrived_ = 0;
  std::vector<DiskTier::Bytes> snapshot_;  // its pages so far
  std::shared_ptr<DiskTier::Read> read_;
  std::chrono::steady_clock::time_point last_arrival_ = std::chrono::steady_clock::now();
  bool done_ = false;
};

class PrefixDisk {
 public:
  // All must outlive it.
  PrefixDisk(PrefixCache& prefixes, DiskTier& tier, PageMemory& memory);

  struct Page {
    PageKey key;
    std::optional<PageKey> parent;  // the page before it of the same group
    PageId page;                    // written by a step that is done
  };
  // Saves those that are not on disk yet, in order. False: not all, for the disk is behind.
  bool save(std::span<const Page> pages);
  // Saves all pages of a snapshot or none.
  void save_snapshot(const BlockHash& block, std::span<const PageId> pages);

  // `blocks` are a sequence's from the first on. Begins to bring back what the disk has of them
  // behind what is in memory; nothing when that is nothing, or the pool has no room for it.
  std::shared_ptr<PrefixRestore> restore(std::span<const BlockKey> blocks);
  // Puts what has come into pages, and ends restores that wait in vain.
  void take_arrivals();
  // A sequence began with this many tokens more than were in memory.
  void count_restored(int tokens) { restored_tokens_ += static_cast<uint64_t>(tokens); }

  void clear();
  DiskStats stats() const;

 private:
  struct Reach;
  class Places;

  Reach reach_of(std::span<const BlockKey> blocks) const;
  void begin(PrefixRestore& restore, std::span<const BlockKey> blocks, const Reach& reach);
  // False: the pool had no page for it.
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
