// sequence_cache.h - one sequence's pages and their place among the known beginnings. No MLX.
// Engine thread only.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/prefix_cache.h"
#include "cache/prefix_disk.h"
#include "cache/sequence_pages.h"

namespace octavo {

// Keep sequences apart whose tokens are equal but whose K and V are not, or that must not know of
// each other.
struct SequenceKeys {
  ExtraKeys every_block = {};  // an adapter
  ExtraKeys first_block = {};  // a salt: what follows is apart through its parents
};

class SequenceCache {
 public:
  // `shared` must outlive it.
  SequenceCache(PrefixCache& shared, SequenceKeys keys);
  ~SequenceCache();
  SequenceCache(const SequenceCache&) = delete;
  SequenceCache& operator=(const SequenceCache&) = delete;

  const SequencePages& pages() const { return pages_; }

  // Rows up to the state's next snapshot, of `rows` rows from `start` on, which is all of them when
  // there is none to come. `edges`: positions, rising, at which one is wanted besides the regular
  // ones.
  int rows_before_snapshot(int start, int rows, std::span<const int> edges) const;

  // Takes a share in the pages of the longest known beginning of `tokens`, of at most `limit`
  // tokens, and returns its length. Only while it holds nothing.
  int reuse(std::span<const TokenId> tokens, int limit);
  // What reuse() would find if no layer had a state.
  int hit_of_pages(std::span<const TokenId> tokens, int limit);
  // Begins to bring back from the disk what of `tokens`, up to `limit`, is not in memory; nothing
  // when there is no more.
  std::shared_ptr<PrefixRestore> restore(std::span<const TokenId> tokens, int limit,
                                         PrefixDisk& disk);
  // Makes room for `tokens` tokens. False, with nothing taken, when the pool has too few pages.
  bool grow_to(int tokens) { return pages_.grow_to(tokens); }
  // Rows [start, end) have been added to a step. At the end of what rows_before_snapshot() allowed
  // the state is kept, if the pool can spare the pages. So it is, for a while, at every full page
  // of the answer, which begins at `answer`: the newest is where a next turn goes on.
  void advance(int start, int end, std::span<const int> edges, int answer = kNoAnswer);
  static constexpr int kNoAnswer = std::numeric_limits<int>::max();
  // K and V of `tokens`, from the sequence's first on, are written by the steps queued so far:
  // their full pages can be found from now on. So can snapshots of at most `snapshot_end` tokens: a
  // step that reads one comes behind the step that writes it.
  void publish(std::span<const TokenId> tokens, int snapshot_end = kAllSnapshots);
  static constexpr int kAllSnapshots = std::numeric_limits<int>::max();
  // The steps of the first `done` tokens are done: what is full of them goes to the disk. `ended`:
  // no row comes behind them.
  void save(int done, bool ended, PrefixDisk& disk);
  // The pages that hold tokens from `from` on cannot be found any more: their step failed.
  void retract(int from);
  // Gives back the pages that no row from `position` on looks at.
  void release_behind(int position) { pages_.release_behind(position); }
  // Gives back every page.
  void release();

 private:
  struct Snapshot {
    int tokens;
    std::vector<PageId> pages;
    bool passing = false;  // of an answer: goes when the next one comes
  };
  // The newest published snapshot that goes when the next one comes. Nobody holds its pages.
  struct Passing {
    int tokens;
    uint64_t serial;
  };

  // The node behind the first `tokens` tokens, which are published.
  NodeId node_at(int tokens) const;
  void publish_snapshot(const Snapshot& snapshot);
  // The node of passing_ while its snapshot is there.
  NodeId passing_node() const;
  // The known nodes of its blocks, up to `limit` tokens.
  std::vector<NodeId> known_path(std::span<const TokenId> tokens, int limit);
  BlockKey block_key(std::span<const TokenId> tokens, size_t block);

  PrefixCache& shared_;
  ExtraKeys first_extra_;
  ExtraKeys extra_;
  SequencePages pages_;
  std::vector<BlockHash> hashes_;    // of the blocks named so far; tokens never change
  NodeId tip_ = kRootNode;           // of the last published block; pinned
  size_t published_ = 0;             // blocks
  size_t saved_ = 0;                 // blocks the disk was given
  std::vector<Snapshot> snapshots_;  // kept, not published yet; the sequence holds their pages
  std::vector<Snapshot> unsaved_;    // kept; their step may not be done
  std::optional<Passing> passing_;
};

}  // namespace octavo
