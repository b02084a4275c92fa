#include "cache/sequence_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

SequenceCache::SequenceCache(PrefixCache& shared, SequenceKeys keys)
    : shared_(shared),
      first_extra_(keys.every_block),
      extra_(std::move(keys.every_block)),
      pages_(shared.plan(), shared.pool()) {
  for (auto& key : keys.first_block) first_extra_.push_back(std::move(key));
  shared_.index().pin(kRootNode);
}

SequenceCache::~SequenceCache() { shared_.index().unpin(tip_); }

BlockKey SequenceCache::block_key(std::span<const TokenId> tokens, size_t block) {
  const auto size = static_cast<size_t>(shared_.hash_block_tokens());
  const auto own = tokens.subspan(block * size, size);
  const ExtraKeys& extra = block == 0 ? first_extra_ : extra_;
  if (block == hashes_.size()) {
    const BlockHash& parent = hashes_.empty() ? none_hash() : hashes_.back();
    hashes_.push_back(hash_block(parent, own, extra));
  }
  return {hashes_[block], own, &extra};
}

int SequenceCache::reuse(std::span<const TokenId> tokens, int limit) {
  OCTAVO_CHECK(published_ == 0);
  const auto blocks = static_cast<size_t>(limit / shared_.hash_block_tokens());
  std::vector<NodeId> path;
  for (NodeId node = kRootNode; path.size() < blocks;) {
    node = shared_.index().find(node, block_key(tokens, path.size()));
    if (node == kNoNode) break;
    path.push_back(node);
  }
  const PrefixHit hit = shared_.longest_hit(path);
  if (hit.tokens == 0) return 0;
  pages_.adopt(hit.pages, hit.state);
  published_ = static_cast<size_t>(hit.tokens / shared_.hash_block_tokens());
  const NodeId tip = path[published_ - 1];
  shared_.index().pin(tip);
  shared_.index().unpin(std::exchange(tip_, tip));
  return hit.tokens;
}

int SequenceCache::rows_before_snapshot(int start, int rows, std::span<const int> edges) const {
  const int every = shared_.snapshot_tokens();
  if (every == 0) return rows;
  int end = start / every * every + every;
  const auto edge = std::ranges::upper_bound(edges, start);
  if (edge != edges.end()) end = std::min(end, *edge);
  return std::min(rows, end - start);
}

void SequenceCache::advance(int start, int end, std::span<const int> edges) {
  pages_.state().advance(start);
  const int every = shared_.snapshot_tokens();
  if (every == 0) return;
  const bool at_edge = end % every == 0 || std::ranges::binary_search(edges, end);
  // What keeping it costs is another copy for the next rows. Nobody is sent back for a snapshot.
  const int spare = shared_.pool().available_pages();
  const bool affordable = shared_.most_snapshots() > 0 && spare >= 2 * shared_.plan().state_pages();
  if (!at_edge || !affordable) return;
  const auto pages = pages_.state().keep();
  snapshots_.push_back({end, {pages.begin(), pages.end()}});
}

void SequenceCache::publish(std::span<const TokenId> tokens, int snapshot_end) {
  const auto size = static_cast<size_t>(shared_.hash_block_tokens());
  for (; (published_ + 1) * size <= tokens.size(); ++published_) {
    const NodeId node = shared_.index().pin_child(tip_, block_key(tokens, published_));
    shared_.index().unpin(std::exchange(tip_, node));
    const size_t end = (published_ + 1) * size;
    for (size_t g = 0; g < shared_.plan().groups.size(); ++g) {
      const auto page_tokens = static_cast<size_t>(shared_.plan().groups[g].block_tokens);
      if (end % page_tokens != 0) continue;
      const PageId page = pages_.table(static_cast<int>(g))[end / page_tokens - 1];
      if (page != kNoPage) shared_.index().set_page(node, static_cast<int>(g), page);
    }
  }
  const auto known = static_cast<int>(published_ * size);
  for (const Snapshot& snapshot : snapshots_) {
    if (snapshot.tokens > std::min(known, snapshot_end)) continue;
    NodeId node = tip_;
    for (int end = known; end > snapshot.tokens; end -= static_cast<int>(size))
      node = shared_.index().parent(node);
    shared_.index().set_snapshot(node, snapshot.pages, shared_.most_snapshots());
  }
  std::erase_if(snapshots_, [&](const Snapshot& snapshot) {
    return snapshot.tokens <= std::min(known, snapshot_end);
  });
}

void SequenceCache::retract(int from) {
  snapshots_.clear();
  for (const auto copy : pages_.state().written_from(from)) {
    if (!copy.empty()) shared_.index().forget_page(copy.front());
  }
  for (size_t g = 0; g < shared_.plan().groups.size(); ++g) {
    const auto table = pages_.table(static_cast<int>(g));
    const auto first = static_cast<size_t>(from / shared_.plan().groups[g].block_tokens);
    for (size_t i = first; i < table.size(); ++i) {
      if (table[i] != kNoPage) shared_.index().forget_page(table[i]);
    }
  }
}

void SequenceCache::release() {
  pages_.release();
  snapshots_.clear();
  shared_.index().unpin(std::exchange(tip_, kRootNode));
  shared_.index().pin(kRootNode);
  published_ = 0;
}

}  // namespace octavo
