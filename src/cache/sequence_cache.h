// sequence_cache.h - one sequence's pages and their registration in the prefix index. No MLX.
// Engine thread only.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/prefix_cache.h"
#include "cache/prefix_disk.h"
#include "cache/sequence_pages.h"

namespace octavo {

// An image's tokens [offset, offset + length).
struct ImageKeys {
  std::string identifier;
  int offset = 0;
  int length = 0;
};

// Separates sequences with equal tokens but different K and V, or that must not share.
struct SequenceKeys {
  ExtraKeys every_block = {};          // an adapter
  ExtraKeys first_block = {};          // a salt: later blocks differ through their parents
  std::vector<ImageKeys> images = {};  // ascending
  CacheNamespace space = {};
};

class SequenceCache {
 public:
  // `shared` must outlive this object.
  SequenceCache(PrefixCache& shared, SequenceKeys keys);
  ~SequenceCache();
  SequenceCache(const SequenceCache&) = delete;
  SequenceCache& operator=(const SequenceCache&) = delete;

  const SequencePages& pages() const { return pages_; }

  // How many of the `rows` rows from `start` come before the next snapshot; all if there is none.
  // `edges`: ascending positions of additional snapshots.
  int rows_before_snapshot(int start, int rows, std::span<const int> edges) const;

  // Shares the pages of the longest cached prefix of `tokens`, at most `limit` tokens, and returns
  // its length. Only while the sequence holds no pages.
  int reuse(std::span<const TokenId> tokens, int limit);
  // What reuse() would return if no layer had a state.
  int hit_of_pages(std::span<const TokenId> tokens, int limit);
  // Starts restoring the part of `tokens`, up to `limit`, that is on disk but not in memory. Null
  // if there is none.
  std::shared_ptr<PrefixRestore> restore(std::span<const TokenId> tokens, int limit,
                                         PrefixDisk& disk);
  // Gets pages for `tokens` tokens, the last `drafts` of which are drafts. Returns false, without a
  // change, if the pool has too few.
  bool grow_to(int tokens, int drafts = 0) { return pages_.grow_to(tokens, drafts); }
  // Rows [start, end) have been added to a step. At a snapshot position the state is kept if the
  // pool has enough pages. In the output, which begins at `answer`, the state of the newest full
  // page is kept too, for the next turn.
  void advance(int start, int end, std::span<const int> edges, int answer = kNoAnswer);
  static constexpr int kNoAnswer = std::numeric_limits<int>::max();
  // Row `start` and drafts after it have been added to a step.
  void advance_drafts(int start) { pages_.state().advance(start); }
  // That step is complete and rows [start, end) count. At snapshot positions among them the state
  // is kept as in advance().
  void accept_drafts(int start, int end, std::span<const int> edges, int answer);
  // Registers full pages of `tokens`, whose K and V are written by steps queued so far, and
  // snapshots of at most `snapshot_end` tokens: a step that reads a snapshot must come after the
  // step that writes it.
  void publish(std::span<const TokenId> tokens, int snapshot_end = kAllSnapshots);
  static constexpr int kAllSnapshots = std::numeric_limits<int>::max();
  // Passes full pages of the first `done` tokens, whose steps are complete, to the disk. `ended`:
  // no more rows follow.
  void save(int done, bool ended, PrefixDisk& disk);
  // Until release(), publish() and save() do nothing: the pages may be wrong.
  void stop_sharing() { shares_ = false; }
  // Unregisters pages with tokens from `from` on, because their step failed.
  void retract(int from);
  // Releases the pages that no row from `position` on reads.
  void release_behind(int position) { pages_.release_behind(position); }
  // Releases every page.
  void release();

 private:
  struct Snapshot {
    int tokens;
    std::vector<PageId> pages;
    bool passing = false;  // of the output: replaced by the next one
  };
  // The newest published snapshot that the next one replaces. Its pages are not referenced.
  struct Passing {
    int tokens;
    uint64_t serial;
  };

  // Keeps the current state, after `end` tokens, if that is a snapshot position.
  void keep_snapshot(int end, std::span<const int> edges, int answer);
  // The node after the first `tokens` tokens, which are published.
  NodeId node_at(int tokens) const;
  void publish_snapshot(const Snapshot& snapshot);
  // The nodes of blocks not yet passed to the disk; none if the index is not observed.
  std::vector<NodeId> unsaved_nodes() const;
  // The node of passing_ while its snapshot exists.
  NodeId passing_node() const;
  // The existing nodes of its blocks, up to `limit` tokens.
  std::vector<NodeId> known_path(std::span<const TokenId> tokens, int limit);
  BlockKey block_key(std::span<const TokenId> tokens, size_t block);
  const ExtraKeys& extra_of(size_t block) const;
  // As vLLM's keys, for each block with tokens of an image: identifier and offset in the block, which may
  // be negative, between the adapter and the salt.
  void add_images(const SequenceKeys& keys);
  // The block's hash in the keys of the disk tier.
  bool common() const { return space_ == CacheNamespace{}; }
  BlockHash disk_hash(size_t block) const { return in_namespace(hashes_[block], space_); }

  PrefixCache& shared_;
  ExtraKeys first_extra_;
  ExtraKeys extra_;
  std::map<size_t, ExtraKeys> image_extra_;  // of blocks with images, all their keys
  CacheNamespace space_;
  SequencePages pages_;
  std::vector<BlockHash> hashes_;    // of the blocks hashed so far; tokens never change
  NodeId tip_ = kRootNode;           // of the last published block; pinned
  size_t published_ = 0;             // blocks
  size_t reused_ = 0;                // of them, taken from the cache
  size_t saved_ = 0;                 // blocks passed to the disk
  std::vector<Snapshot> snapshots_;  // kept, not yet published; the sequence references their pages
  std::vector<Snapshot> unsaved_;    // kept; their step may not be complete
  std::optional<Passing> passing_;
  bool shares_ = true;
};

}  // namespace octavo
