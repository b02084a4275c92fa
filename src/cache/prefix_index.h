// prefix_index.h - finds pages by their tokens and all tokens before them. No MLX. Engine thread
// only.
//
// A tree of blocks, each node following its parent. Hashes only find candidates; the parent, the
// tokens and the namespace are compared, so a collision can neither leak nor corrupt data. A node exists while it has
// a page, a child or a pin.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/block_hash.h"
#include "cache/cache_namespace.h"
#include "cache/page_pool.h"
#include "cache/prefix_observer.h"

namespace octavo {

using NodeId = int32_t;
inline constexpr NodeId kRootNode = 0;  // the start of every sequence
inline constexpr NodeId kNoNode = -1;

struct BlockKey {
  BlockHash hash = {};
  std::span<const TokenId> tokens = {};
  const ExtraKeys* extra = nullptr;
  const CacheNamespace* space = nullptr;
};

class PrefixIndex {
 public:
  // `pool` must outlive the index, which registers for its evictions. hash_bits < 64 only in tests.
  PrefixIndex(PagePool& pool, int groups, int hash_bits = 64);

  // Reports changes to `observer` from now on, while the index is empty. blocks_per_page: of each
  // group, then of a snapshot, of which only those after whole pages of every group are reported.
  void observe(PrefixObserver& observer, std::vector<int> blocks_per_page);
  bool observed() const { return observer_ != nullptr; }
  // The block that ends at `node`, as it is reported. Only if observed.
  CachedBlock describe(NodeId node, int group) const;

  // The block that follows `parent`, or kNoNode.
  NodeId find(NodeId parent, const BlockKey& key) const;
  // The same, but creates a missing node, and adds a pin.
  NodeId pin_child(NodeId parent, const BlockKey& key);
  void pin(NodeId node);
  void unpin(NodeId node);

  // The page of `group` that ends with this block, or kNoPage.
  PageId page(NodeId node, int group) const;
  // Registers the page and keeps it in the pool. False if the node already has a page for this
  // group; the caller's page is then not shared.
  bool set_page(NodeId node, int group, PageId page);
  // Unregisters the page, if it is registered. A snapshot is dropped whole.
  void forget_page(PageId page);

  // The pages of the snapshot after this block; may be empty.
  std::span<const PageId> snapshot(NodeId node) const { return at(node).snapshot; }
  // A unique number of the snapshot; 0 if there is none.
  uint64_t snapshot_serial(NodeId node) const {
    return at(node).snapshot.empty() ? 0 : at(node).snapshot_serial;
  }
  // Registers a snapshot and keeps its pages in the pool. False if the node already has one. Beyond
  // `most` snapshots, the least recently used ones are dropped.
  bool set_snapshot(NodeId node, std::span<const PageId> pages, int most);
  // Marks the snapshot as used.
  void touch_snapshot(NodeId node);
  int snapshots() const { return static_cast<int>(snapshots_.size()); }
  // Unregisters every page.
  void clear();

  int nodes() const { return static_cast<int>(nodes_.size() - unused_.size()); }
  // For checks: the node and the group of a page (-1: snapshots), or kNoNode.
  NodeId node_of(PageId page) const { return places_[static_cast<size_t>(page)].node; }
  int group_of(PageId page) const { return places_[static_cast<size_t>(page)].group; }
  NodeId parent(NodeId node) const { return at(node).parent; }
  std::span<const TokenId> tokens(NodeId node) const { return at(node).tokens; }
  const ExtraKeys& extra(NodeId node) const { return at(node).extra; }
  const CacheNamespace& space(NodeId node) const { return at(node).space; }

 private:
  struct Node {
    NodeId parent = kNoNode;
    NodeId first_child = kNoNode;
    NodeId next_sibling = kNoNode;
    NodeId previous_sibling = kNoNode;
    int32_t pins = 0;
    int32_t page_count = 0;
    uint64_t hash = 0;
    std::vector<TokenId> tokens = {};
    ExtraKeys extra = {};
    CacheNamespace space = {};
    std::vector<PageId> pages = {};  // by group
    std::vector<PageId> snapshot = {};
    uint64_t snapshot_serial = 0;
  };
  static constexpr int32_t kSnapshot = -1;  // in place of a group
  struct Place {
    NodeId node = kNoNode;
    int32_t group = 0;
  };

  const Node& at(NodeId node) const;
  Node& at(NodeId node);
  uint64_t cut(const BlockHash& hash) const;
  NodeId make_node(NodeId parent, const BlockKey& key);
  // Removes the node if nothing refers to it, then its parent, and so on.
  void prune(NodeId node);
  void unlink_from_parent(const Node& node);
  // Reports the page, and those after it again: indexers forget what follows a removed block.
  void announce(NodeId node, int group);
  // The nodes `generations` below `node`.
  std::vector<NodeId> descendants(NodeId node, int generations) const;
  bool reports_snapshot(NodeId node) const;
  void unname(PageId page);
  // Unregisters the node's snapshot; all its pages but `except` become free once unreferenced.
  void drop_snapshot(NodeId node, PageId except);

  PagePool& pool_;
  int groups_;
  uint64_t hash_mask_;
  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;
  std::unordered_multimap<uint64_t, NodeId> by_hash_;
  std::vector<Place> places_;  // by page
  uint64_t newest_serial_ = 0;
  std::vector<NodeId> snapshots_;  // nodes with a snapshot, least recently used first
  PrefixObserver* observer_ = nullptr;
  std::vector<int> blocks_per_page_;  // by group, then of a snapshot
};

}  // namespace octavo
