#include "cache/sequence_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

SequenceCache::SequenceCache(PrefixCache& shared, SequenceKeys keys)
    : shared_(shared),
      first_extra_(keys.every_block),
      extra_(keys.every_block),
      space_(keys.space),
      pages_(shared.plan(), shared.pool()) {
  add_images(keys);
  for (auto& key : keys.first_block) first_extra_.push_back(std::move(key));
  shared_.index().pin(kRootNode);
}

SequenceCache::~SequenceCache() { shared_.index().unpin(tip_); }

void SequenceCache::add_images(const SequenceKeys& keys) {
  const int size = shared_.hash_block_tokens();
  for (const ImageKeys& image : keys.images) {
    const int last = (image.offset + image.length - 1) / size;
    for (int block = image.offset / size; block <= last; ++block) {
      ExtraKeys& extra = image_extra_.try_emplace(static_cast<size_t>(block), extra_).first->second;
      extra.push_back(image_key(image.identifier, image.offset - block * size));
    }
  }
  const auto first = image_extra_.find(0);
  if (first != image_extra_.end())
    first->second.insert(first->second.end(), keys.first_block.begin(), keys.first_block.end());
}

const ExtraKeys& SequenceCache::extra_of(size_t block) const {
  const auto found = image_extra_.find(block);
  if (found != image_extra_.end()) return found->second;
  return block == 0 ? first_extra_ : extra_;
}

BlockKey SequenceCache::block_key(std::span<const TokenId> tokens, size_t block) {
  const auto size = static_cast<size_t>(shared_.hash_block_tokens());
  const auto own = tokens.subspan(block * size, size);
  const ExtraKeys& extra = extra_of(block);
  if (block == hashes_.size()) {
    const BlockHash& parent = hashes_.empty() ? none_hash() : hashes_.back();
    hashes_.push_back(hash_block(parent, own, extra));
  }
  return {hashes_[block], own, &extra, &space_};
}

std::vector<NodeId> SequenceCache::known_path(std::span<const TokenId> tokens, int limit) {
  const auto blocks = static_cast<size_t>(limit / shared_.hash_block_tokens());
  std::vector<NodeId> path;
  for (NodeId node = kRootNode; path.size() < blocks;) {
    node = shared_.index().find(node, block_key(tokens, path.size()));
    if (node == kNoNode) break;
    path.push_back(node);
  }
  return path;
}

int SequenceCache::hit_of_pages(std::span<const TokenId> tokens, int limit) {
  return shared_.longest_hit(known_path(tokens, limit), /*with_state=*/false).tokens;
}

int SequenceCache::reuse(std::span<const TokenId> tokens, int limit) {
  OCTAVO_CHECK(published_ == 0);
  const std::vector<NodeId> path = known_path(tokens, limit);
  const PrefixHit hit = shared_.longest_hit(path);
  if (hit.tokens == 0) return 0;
  pages_.adopt(hit.pages, hit.state);
  published_ = static_cast<size_t>(hit.tokens / shared_.hash_block_tokens());
  reused_ = published_;
  const NodeId tip = path[published_ - 1];
  shared_.index().pin(tip);
  shared_.index().unpin(std::exchange(tip_, tip));
  return hit.tokens;
}

std::shared_ptr<PrefixRestore> SequenceCache::restore(std::span<const TokenId> tokens, int limit,
                                                      PrefixDisk& disk) {
  OCTAVO_CHECK(published_ == 0);
  std::vector<BlockKey> blocks;
  const auto count = static_cast<size_t>(limit / shared_.hash_block_tokens());
  for (size_t block = 0; block < count; ++block) blocks.push_back(block_key(tokens, block));
  return disk.restore(blocks);
}

int SequenceCache::rows_before_snapshot(int start, int rows, std::span<const int> edges) const {
  const int every = shared_.snapshot_tokens();
  if (every == 0) return rows;
  int end = start / every * every + every;
  const auto edge = std::ranges::upper_bound(edges, start);
  if (edge != edges.end()) end = std::min(end, *edge);
  return std::min(rows, end - start);
}

void SequenceCache::advance(int start, int end, std::span<const int> edges, int answer) {
  pages_.state().advance(start);
  keep_snapshot(end, edges, answer);
}

void SequenceCache::accept_drafts(int start, int end, std::span<const int> edges, int answer) {
  for (int position = start + 1; position <= end; ++position) {
    keep_snapshot(position, edges, answer);
    if (position < end) pages_.state().accept_draft(position);
  }
  pages_.state().drop_drafts();
}

void SequenceCache::keep_snapshot(int end, std::span<const int> edges, int answer) {
  const int every = shared_.snapshot_tokens();
  if (every == 0 || !shares_) return;
  const bool at_edge = end % every == 0 || std::ranges::binary_search(edges, end);
  const bool passing = !at_edge && end > answer && end % shared_.plan().common_tokens() == 0;
  // Keeping it costs another copy for the next rows. A snapshot never preempts a sequence.
  const int spare = shared_.pool().available_pages();
  int least = 2 * shared_.plan().state_pages();
  // A snapshot of the output serves a turn that may never come, so it is not kept when pages are
  // scarce.
  if (passing) least = std::max(least, shared_.pool().page_count() / 3);
  const bool affordable = shared_.most_snapshots() > 0 && spare >= least;
  if ((!at_edge && !passing) || !affordable) return;
  const auto pages = pages_.state().keep();
  snapshots_.push_back({end, {pages.begin(), pages.end()}, passing});
  if (!passing) unsaved_.push_back(snapshots_.back());
}

void SequenceCache::publish(std::span<const TokenId> tokens, int snapshot_end) {
  if (!shares_) return;
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
  const int end = std::min(static_cast<int>(published_ * size), snapshot_end);
  for (const Snapshot& snapshot : snapshots_) {
    if (snapshot.tokens <= end) publish_snapshot(snapshot);
  }
  std::erase_if(snapshots_, [&](const Snapshot& snapshot) { return snapshot.tokens <= end; });
}

NodeId SequenceCache::node_at(int tokens) const {
  NodeId node = tip_;
  for (int end = static_cast<int>(published_) * shared_.hash_block_tokens(); end > tokens;
       end -= shared_.hash_block_tokens())
    node = shared_.index().parent(node);
  return node;
}

NodeId SequenceCache::passing_node() const {
  if (!passing_) return kNoNode;
  const NodeId node = node_at(passing_->tokens);
  return shared_.index().snapshot_serial(node) == passing_->serial ? node : kNoNode;
}

void SequenceCache::publish_snapshot(const Snapshot& snapshot) {
  PrefixIndex& index = shared_.index();
  const NodeId node = node_at(snapshot.tokens);
  const NodeId before = passing_node();
  if (snapshot.passing && before != kNoNode) index.forget_page(index.snapshot(before).front());
  const bool named = index.set_snapshot(node, snapshot.pages, shared_.most_snapshots());
  if (!snapshot.passing) return;
  passing_.reset();
  if (named) passing_ = {snapshot.tokens, index.snapshot_serial(node)};
}

std::vector<NodeId> SequenceCache::unsaved_nodes() const {
  if (!shared_.index().observed() || published_ <= saved_) return {};
  std::vector<NodeId> nodes(published_ - saved_);
  NodeId node = tip_;
  for (auto place = nodes.rbegin(); place != nodes.rend(); ++place) {
    *place = node;
    node = shared_.index().parent(node);
  }
  return nodes;
}

void SequenceCache::save(int done, bool ended, PrefixDisk& disk) {
  if (!shares_) return;
  const int size = shared_.hash_block_tokens();
  const auto end = std::min(static_cast<size_t>(done / size), published_);
  std::vector<PrefixDisk::Page> pages;
  const std::vector<NodeId> nodes = unsaved_nodes();
  for (size_t block = saved_; block < end; ++block) {
    for (size_t g = 0; g < shared_.plan().groups.size(); ++g) {
      const auto per_page = static_cast<size_t>(shared_.plan().groups[g].block_tokens / size);
      if ((block + 1) % per_page != 0) continue;
      // Not the page in the index: another sequence's page may be in a step that still runs.
      const PageId page = pages_.table(static_cast<int>(g))[(block + 1) / per_page - 1];
      if (page == kNoPage) continue;
      const auto part = static_cast<int32_t>(g);
      pages.push_back({.key = {disk_hash(block), part},
                       .parent = std::nullopt,
                       .page = page,
                       .common = common(),
                       .computed = block >= reused_});
      if (block >= per_page) pages.back().parent = PageKey{disk_hash(block - per_page), part};
      if (!nodes.empty())
        pages.back().block = shared_.index().describe(nodes[block - saved_], static_cast<int>(g));
    }
  }
  if (disk.save(pages)) saved_ = std::max(saved_, end);
  for (const Snapshot& snapshot : unsaved_) {
    if (snapshot.tokens <= static_cast<int>(end) * size)
      disk.save_snapshot(disk_hash(static_cast<size_t>(snapshot.tokens / size) - 1), snapshot.pages,
                         common());
  }
  std::erase_if(unsaved_, [&](const Snapshot& snapshot) {
    return snapshot.tokens <= static_cast<int>(end) * size;
  });
  const NodeId passing = ended ? passing_node() : kNoNode;
  if (passing != kNoNode && passing_->tokens <= static_cast<int>(end) * size)
    disk.save_snapshot(disk_hash(static_cast<size_t>(passing_->tokens / size) - 1),
                       shared_.index().snapshot(passing), common());
}

void SequenceCache::retract(int from) {
  snapshots_.clear();
  unsaved_.clear();
  passing_.reset();
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
  unsaved_.clear();
  passing_.reset();
  saved_ = 0;
  reused_ = 0;
  shares_ = true;
  shared_.index().unpin(std::exchange(tip_, kRootNode));
  shared_.index().pin(kRootNode);
  published_ = 0;
}

}  // namespace octavo
