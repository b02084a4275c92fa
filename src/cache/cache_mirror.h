// cache_mirror.h - for tests: what an observer of the prefix cache believes it holds. No MLX.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "cache/prefix_observer.h"

namespace octavo {

// Like an indexer of a router, it also keeps a tree of each group's blocks in memory: a block without
// its parent is not added, and a removed block takes what follows it along.
class CacheMirror : public PrefixObserver {
 public:
  using Block = std::pair<int, uint64_t>;  // group, hash

  void begin(const CachePlan& plan) override {
    for (const CacheGroup& group : plan.groups) block_tokens_.push_back(group.block_tokens);
    block_tokens_.push_back(plan.common_tokens());
  }
  void stored(CachedBlock block, CacheMedium medium) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(static_cast<int>(block.tokens.size()),
              block_tokens_[static_cast<size_t>(block.group)]);
    ++stored_[medium];
    blocks_[medium].insert({block.group, block.hash});
    auto& tree = tree_[block.group];
    if (medium == CacheMedium::kMemory && (!block.parent || tree.contains(*block.parent)))
      tree[block.hash] = block.parent;
  }
  void removed(int group, uint64_t hash, CacheMedium medium) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(blocks_[medium].erase({group, hash}), 1u) << "was not stored";
    if (medium == CacheMedium::kMemory) cut(group, hash);
  }
  void cleared() override {
    const std::lock_guard lock(mutex_);
    blocks_.clear();
    tree_.clear();
  }

  std::set<Block> blocks(CacheMedium medium) const {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(medium);
    return found == blocks_.end() ? std::set<Block>() : found->second;
  }
  int stored_count(CacheMedium medium) const { return stored_.at(medium); }
  // Whether an indexer finds the block, coming from the first one.
  bool reaches(int group, uint64_t hash) const {
    const auto tree = tree_.find(group);
    if (tree == tree_.end()) return false;
    for (std::optional<uint64_t> at = hash; at;) {
      const auto found = tree->second.find(*at);
      if (found == tree->second.end()) return false;
      at = found->second;
    }
    return true;
  }

 private:
  void cut(int group, uint64_t hash) {
    auto& tree = tree_[group];
    std::vector<uint64_t> waiting = {hash};
    while (!waiting.empty()) {
      const uint64_t next = waiting.back();
      waiting.pop_back();
      tree.erase(next);
      for (const auto& [child, parent] : tree)
        if (parent == next) waiting.push_back(child);
    }
  }

  std::vector<int> block_tokens_;
  mutable std::mutex mutex_;
  std::map<CacheMedium, std::set<Block>> blocks_;
  std::map<CacheMedium, int> stored_;
  std::map<int, std::map<uint64_t, std::optional<uint64_t>>> tree_;
};

}  // namespace octavo
