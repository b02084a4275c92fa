#include "cache/prefix_index.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

PrefixIndex::PrefixIndex(PagePool& pool, int groups, int hash_bits)
    : pool_(pool),
      groups_(groups),
      hash_mask_(hash_bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << hash_bits) - 1),
      places_(static_cast<size_t>(pool.page_count())) {
  nodes_.emplace_back();
  nodes_[kRootNode].pins = 1;
  pool_.on_evict([this](PageId page) { unname(page); });
}

NodeId PrefixIndex::find(NodeId parent, const BlockKey& key) const {
  const auto [first, last] = by_hash_.equal_range(cut(key.hash));
  for (auto it = first; it != last; ++it) {
    const Node& node = at(it->second);
    if (node.parent == parent && std::ranges::equal(node.tokens, key.tokens) &&
        node.extra == *key.extra && node.space == *key.space) {
      return it->second;
    }
  }
  return kNoNode;
}

NodeId PrefixIndex::pin_child(NodeId parent, const BlockKey& key) {
  NodeId node = find(parent, key);
  if (node == kNoNode) node = make_node(parent, key);
  pin(node);
  return node;
}

void PrefixIndex::pin(NodeId node) { ++at(node).pins; }

void PrefixIndex::unpin(NodeId node) {
  OCTAVO_CHECK(at(node).pins > 0);
  --at(node).pins;
  prune(node);
}

PageId PrefixIndex::page(NodeId node, int group) const {
  return at(node).pages[static_cast<size_t>(group)];
}

bool PrefixIndex::set_page(NodeId node, int group, PageId page) {
  Node& entry = at(node);
  PageId& slot = entry.pages[static_cast<size_t>(group)];
  if (slot != kNoPage) return slot == page;
  OCTAVO_CHECK(places_[static_cast<size_t>(page)].node == kNoNode);
  slot = page;
  ++entry.page_count;
  places_[static_cast<size_t>(page)] = {node, group};
  pool_.keep(page);
  if (observer_ != nullptr) announce(node, group);
  return true;
}

void PrefixIndex::forget_page(PageId page) {
  if (node_of(page) == kNoNode) return;
  unname(page);
  pool_.forget(page);
}

bool PrefixIndex::set_snapshot(NodeId node, std::span<const PageId> pages, int most) {
  if (!at(node).snapshot.empty()) return false;
  while (snapshots() >= most && !snapshots_.empty()) drop_snapshot(snapshots_.front(), kNoPage);
  if (snapshots() >= most) return false;
  at(node).snapshot.assign(pages.begin(), pages.end());
  at(node).snapshot_serial = ++newest_serial_;
  ++at(node).page_count;
  snapshots_.push_back(node);
  for (PageId page : pages) {
    OCTAVO_CHECK(node_of(page) == kNoNode);
    places_[static_cast<size_t>(page)] = {node, kSnapshot};
    pool_.keep(page);
  }
  if (reports_snapshot(node)) observer_->stored(describe(node, groups_), CacheMedium::kMemory);
  return true;
}

void PrefixIndex::touch_snapshot(NodeId node) {
  const auto found = std::ranges::find(snapshots_, node);
  OCTAVO_CHECK(found != snapshots_.end());
  std::rotate(found, found + 1, snapshots_.end());
}

void PrefixIndex::drop_snapshot(NodeId node, PageId except) {
  std::erase(snapshots_, node);
  for (PageId page : std::exchange(at(node).snapshot, {})) {
    places_[static_cast<size_t>(page)] = Place{};
    if (page != except) pool_.forget(page);
  }
  --at(node).page_count;
  if (reports_snapshot(node)) observer_->removed(groups_, at(node).hash, CacheMedium::kMemory);
  prune(node);
}

void PrefixIndex::clear() {
  PrefixObserver* observer = std::exchange(observer_, nullptr);
  for (PageId page = 0; page < pool_.page_count(); ++page) forget_page(page);
  observer_ = observer;
  if (observer_ != nullptr) observer_->cleared();
}

void PrefixIndex::observe(PrefixObserver& observer, std::vector<int> blocks_per_page) {
  OCTAVO_CHECK(nodes() == 1 && static_cast<int>(blocks_per_page.size()) == groups_ + 1);
  observer_ = &observer;
  blocks_per_page_ = std::move(blocks_per_page);
}

CachedBlock PrefixIndex::describe(NodeId node, int group) const {
  std::vector<NodeId> path;
  NodeId before = node;
  for (int i = 0; i < blocks_per_page_[static_cast<size_t>(group)]; ++i) {
    path.push_back(before);
    before = at(before).parent;
  }
  CachedBlock block{.group = group, .hash = at(node).hash};
  if (before != kRootNode) block.parent = at(before).hash;
  for (auto part = path.rbegin(); part != path.rend(); ++part) {
    const Node& own = at(*part);
    block.tokens.insert(block.tokens.end(), own.tokens.begin(), own.tokens.end());
    for (const ExtraKey& key : own.extra)
      if (std::ranges::count(block.extra, key) == 0) block.extra.push_back(key);
  }
  return block;
}

void PrefixIndex::announce(NodeId node, int group) {
  std::vector<NodeId> waiting = {node};
  while (!waiting.empty()) {
    const NodeId next = waiting.back();
    waiting.pop_back();
    observer_->stored(describe(next, group), CacheMedium::kMemory);
    for (NodeId after : descendants(next, blocks_per_page_[static_cast<size_t>(group)]))
      if (page(after, group) != kNoPage) waiting.push_back(after);
  }
}

std::vector<NodeId> PrefixIndex::descendants(NodeId node, int generations) const {
  std::vector<NodeId> found = {node};
  for (int i = 0; i < generations && !found.empty(); ++i) {
    std::vector<NodeId> children;
    for (NodeId parent : found)
      for (NodeId child = at(parent).first_child; child != kNoNode; child = at(child).next_sibling)
        children.push_back(child);
    found = std::move(children);
  }
  return found;
}

bool PrefixIndex::reports_snapshot(NodeId node) const {
  if (observer_ == nullptr) return false;
  int depth = 0;
  for (; node != kRootNode; node = at(node).parent) ++depth;
  return depth % blocks_per_page_.back() == 0;
}

const PrefixIndex::Node& PrefixIndex::at(NodeId node) const {
  OCTAVO_CHECK(node >= 0 && static_cast<size_t>(node) < nodes_.size());
  return nodes_[static_cast<size_t>(node)];
}

PrefixIndex::Node& PrefixIndex::at(NodeId node) {
  return const_cast<Node&>(std::as_const(*this).at(node));
}

uint64_t PrefixIndex::cut(const BlockHash& hash) const { return short_hash(hash) & hash_mask_; }

NodeId PrefixIndex::make_node(NodeId parent, const BlockKey& key) {
  NodeId id = kNoNode;
  if (unused_.empty()) {
    id = static_cast<NodeId>(nodes_.size());
    nodes_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Node& node = at(id);
  node.parent = parent;
  node.hash = cut(key.hash);
  node.tokens.assign(key.tokens.begin(), key.tokens.end());
  node.extra = *key.extra;
  node.space = *key.space;
  node.pages.assign(static_cast<size_t>(groups_), kNoPage);
  NodeId& first = at(parent).first_child;
  node.next_sibling = first;
  if (first != kNoNode) at(first).previous_sibling = id;
  first = id;
  by_hash_.emplace(node.hash, id);
  return id;
}

void PrefixIndex::prune(NodeId id) {
  while (id != kRootNode) {
    Node& node = at(id);
    if (node.first_child != kNoNode || node.pins > 0 || node.page_count > 0) return;
    const auto [first, last] = by_hash_.equal_range(node.hash);
    by_hash_.erase(
        std::find_if(first, last, [&](const auto& entry) { return entry.second == id; }));
    unlink_from_parent(node);
    const NodeId parent = std::exchange(node, Node{}).parent;
    unused_.push_back(id);
    id = parent;
  }
}

void PrefixIndex::unlink_from_parent(const Node& node) {
  if (node.next_sibling != kNoNode) at(node.next_sibling).previous_sibling = node.previous_sibling;
  NodeId& link = node.previous_sibling == kNoNode ? at(node.parent).first_child
                                                  : at(node.previous_sibling).next_sibling;
  link = node.next_sibling;
}

void PrefixIndex::unname(PageId page) {
  if (places_[static_cast<size_t>(page)].group == kSnapshot) {
    drop_snapshot(places_[static_cast<size_t>(page)].node, page);
    return;
  }
  const Place place = std::exchange(places_[static_cast<size_t>(page)], Place{});
  OCTAVO_CHECK(place.node != kNoNode);
  Node& node = at(place.node);
  node.pages[static_cast<size_t>(place.group)] = kNoPage;
  --node.page_count;
  if (observer_ != nullptr) observer_->removed(place.group, node.hash, CacheMedium::kMemory);
  prune(place.node);
}

}  // namespace octavo
