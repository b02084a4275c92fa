#include "cache/prefix_disk.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/group_path.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// A request waits this long for the next page before it recomputes.
constexpr std::chrono::seconds kPatience{2};

}  // namespace

PrefixRestore::~PrefixRestore() {
  if (tip_ != kNoNode) index_.unpin(tip_);
}

// How much of a sequence is in memory and on disk.
struct PrefixDisk::Reach {
  int memory_tokens = 0;
  int tokens = 0;                                       // including those on disk
  std::vector<std::pair<size_t, PageKey>> wanted = {};  // block and key, in order
  std::vector<PageId> in_memory = {};
};

PrefixDisk::PrefixDisk(PrefixCache& prefixes, DiskTier& tier, PageMemory& memory)
    : prefixes_(prefixes), tier_(tier), memory_(memory) {
  OCTAVO_CHECK(tier.page_bytes() == memory.bytes_per_page());
}

bool PrefixDisk::save(std::span<const Page> pages) {
  if (pages.empty()) return true;
  std::vector<PageKey> keys;
  keys.reserve(pages.size());
  for (const Page& page : pages) keys.push_back(page.key);
  const std::vector<bool> there = tier_.has(keys);
  for (size_t i = 0; i < pages.size(); ++i) {
    const Page& page = pages[i];
    const auto fill = [&](std::span<std::byte> to) { memory_.copy_out(page.page, to); };
    const bool unproven = page.common && !page.computed && tier_.may_have_unproven();
    if (there[i]) {
      // A page that was read would only be compared with itself.
      if (page.computed && tier_.may_have_unproven()) tier_.prove(page.key, fill);
    } else if (!(unproven ? tier_.receive(page.key, page.parent, fill)
                          : tier_.save(page.key, page.parent, fill, page.common))) {
      return false;
    }
    if (page.block) tier_.announce(page.key, *page.block);
  }
  return true;
}

void PrefixDisk::save_snapshot(const BlockHash& block, std::span<const PageId> pages, bool common) {
  std::vector<PageKey> keys;
  for (size_t i = 0; i < pages.size(); ++i) keys.push_back(snapshot_key(block, i));
  const std::vector<bool> there = tier_.has(keys);
  if (static_cast<size_t>(std::ranges::count(there, false)) > static_cast<size_t>(tier_.room()))
    return;
  for (size_t i = 0; i < pages.size(); ++i) {
    const auto fill = [&](std::span<std::byte> to) { memory_.copy_out(pages[i], to); };
    if (there[i] && tier_.may_have_unproven()) tier_.prove(keys[i], fill);
    if (!there[i]) tier_.save(keys[i], std::nullopt, fill, common);
  }
}

// Where each page of a prefix is: in memory, on disk, or nowhere.
class PrefixDisk::Places {
 public:
  Places(PrefixCache& prefixes, const DiskTier& tier, std::span<const BlockKey> blocks)
      : prefixes_(prefixes), tier_(tier), blocks_(blocks) {
    find_nodes();
    find_pages();
  }

  std::span<const NodeId> nodes() const { return nodes_; }

  // True if all pages and the state of the first `tokens` tokens are in memory or on disk.
  bool serve(int tokens) const {
    if (!std::ranges::all_of(groups_, [&](const auto& g) { return g.serves(tokens); }))
      return false;
    const size_t count = blocks_in(tokens);
    return !prefixes_.plan().state || snapshot_in_memory(count) || snapshot_on_disk(count);
  }

  // The pages to restore for them.
  Reach reach(int tokens) const {
    Reach reach{.tokens = tokens};
    const size_t count = blocks_in(tokens);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const size_t pages = count / blocks_per_page(g);
      for (auto p = static_cast<size_t>(groups_[g].first_needed(static_cast<int>(pages)));
           p < pages; ++p) {
        const Place& place = places_[g][p];
        if (place.page == kNoPage) {
          reach.wanted.emplace_back((p + 1) * blocks_per_page(g) - 1, place.key);
        } else {
          reach.in_memory.push_back(place.page);
        }
      }
    }
    std::ranges::stable_sort(reach.wanted, std::less<>(),
                             [](const auto& entry) { return entry.first; });
    if (prefixes_.plan().state && !snapshot_in_memory(count)) {
      for (const PageKey& key : snapshot_keys(count)) reach.wanted.emplace_back(count - 1, key);
    }
    return reach;
  }

 private:
  struct Place {
    PageKey key;
    PageId page = kNoPage;
  };

  size_t blocks_in(int tokens) const {
    return static_cast<size_t>(tokens / prefixes_.hash_block_tokens());
  }
  size_t blocks_per_page(size_t group) const {
    return blocks_in(prefixes_.plan().groups[group].block_tokens);
  }

  BlockHash disk_hash(size_t block) const {
    return in_namespace(blocks_[block].hash, *blocks_[block].space);
  }

  void find_nodes() {
    for (NodeId node = kRootNode; nodes_.size() < blocks_.size();) {
      node = prefixes_.index().find(node, blocks_[nodes_.size()]);
      if (node == kNoNode) return;
      nodes_.push_back(node);
    }
  }

  void find_pages() {
    const size_t count = prefixes_.plan().groups.size();
    std::vector<PageKey> asked;
    for (size_t g = 0; g < count; ++g) {
      auto& places = places_.emplace_back();
      for (size_t end = blocks_per_page(g); end <= blocks_.size(); end += blocks_per_page(g)) {
        Place place{{disk_hash(end - 1), static_cast<int32_t>(g)}};
        if (end <= nodes_.size())
          place.page = prefixes_.index().page(nodes_[end - 1], static_cast<int>(g));
        if (place.page == kNoPage) asked.push_back(place.key);
        places.push_back(place);
      }
    }
    const std::vector<bool> on_disk = tier_.has(asked);
    auto answer = on_disk.begin();
    for (size_t g = 0; g < count; ++g) {
      groups_.emplace_back(prefixes_.plan().groups[g]);
      for (const Place& place : places_[g]) groups_[g].add(place.page != kNoPage || *answer++);
    }
  }

  std::vector<PageKey> snapshot_keys(size_t blocks_before) const {
    std::vector<PageKey> keys;
    for (int i = 0; i < prefixes_.plan().state_pages(); ++i)
      keys.push_back(snapshot_key(disk_hash(blocks_before - 1), static_cast<size_t>(i)));
    return keys;
  }
  bool snapshot_in_memory(size_t blocks_before) const {
    return blocks_before <= nodes_.size() &&
           !prefixes_.index().snapshot(nodes_[blocks_before - 1]).empty();
  }
  bool snapshot_on_disk(size_t blocks_before) const {
    return std::ranges::count(tier_.has(snapshot_keys(blocks_before)), false) == 0;
  }

  PrefixCache& prefixes_;
  const DiskTier& tier_;
  std::span<const BlockKey> blocks_;
  std::vector<NodeId> nodes_;               // of the blocks in memory
  std::vector<std::vector<Place>> places_;  // by group
  std::vector<GroupPath> groups_;
};

PrefixDisk::Reach PrefixDisk::reach_of(std::span<const BlockKey> blocks) const {
  const Places places(prefixes_, tier_, blocks);
  const int in_memory = prefixes_.longest_hit(places.nodes()).tokens;
  const int size = prefixes_.hash_block_tokens();
  Reach reach;
  for (int tokens = static_cast<int>(blocks.size()) * size; tokens > in_memory; tokens -= size) {
    if (!places.serve(tokens)) continue;
    reach = places.reach(tokens);
    break;
  }
  reach.memory_tokens = in_memory;
  return reach;
}

std::vector<PageKey> PrefixDisk::keys_of(const Reach& reach) {
  std::vector<PageKey> keys;
  for (const auto& [block, key] : reach.wanted) keys.push_back(key);
  return keys;
}

std::shared_ptr<PrefixRestore> PrefixDisk::restore(std::span<const BlockKey> blocks) {
  const Reach reach = reach_of(blocks);
  if (reach.wanted.empty()) {
    if (reach.memory_tokens < static_cast<int>(blocks.size()) * prefixes_.hash_block_tokens())
      ++misses_;
    return nullptr;
  }
  if (tier_.may_have_unproven() && tier_.wants_proof(keys_of(reach))) return nullptr;
  // Another sequence may be restoring the same prefix.
  for (const auto& weak : restores_) {
    const auto other = weak.lock();
    if (other && !other->done_ && other->to_ >= reach.tokens &&
        std::ranges::any_of(other->targets_, [&](const auto& target) {
          return target.key == reach.wanted.front().second;
        }))
      return other;
  }
  PagePool& pool = prefixes_.pool();
  if (static_cast<int>(reach.wanted.size() + reach.in_memory.size()) > pool.available_pages())
    return nullptr;
  // Keeps the part in memory until the rest arrives.
  pool.share(reach.in_memory);
  ++hits_;
  auto restore =
      std::make_shared<PrefixRestore>(prefixes_.index(), reach.memory_tokens, reach.tokens);
  begin(*restore, blocks, reach);
  restores_.push_back(restore);
  return restore;
}

void PrefixDisk::begin(PrefixRestore& restore, std::span<const BlockKey> blocks,
                       const Reach& reach) {
  PrefixIndex& index = prefixes_.index();
  const auto count = static_cast<size_t>(reach.tokens / prefixes_.hash_block_tokens());
  std::vector<NodeId> path;
  index.pin(kRootNode);
  NodeId tip = kRootNode;
  for (size_t block = 0; block < count; ++block) {
    const NodeId child = index.pin_child(tip, blocks[block]);
    index.unpin(std::exchange(tip, child));
    path.push_back(tip);
  }
  restore.tip_ = tip;
  for (const auto& [block, key] : reach.wanted) restore.targets_.push_back({key, path[block]});
  restore.read_ = tier_.read(keys_of(reach));
}

void PrefixDisk::take_arrivals() {
  std::erase_if(restores_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : restores_) {
    const auto restore = weak.lock();
    if (!restore || restore->done_) continue;
    const auto now = Clock::now();
    for (DiskTier::Arrival& arrival : tier_.take(*restore->read_)) {
      restore->last_arrival_ = now;
      ++restore->arrived_;
      if (!restore->done_) restore->done_ = !install(*restore, arrival);
    }
    if (restore->arrived_ == restore->targets_.size() || now - restore->last_arrival_ > kPatience)
      restore->done_ = true;
    if (restore->done_) {
      restore->read_.reset();
      restore->snapshot_.clear();
    }
  }
}

bool PrefixDisk::install(PrefixRestore& restore, DiskTier::Arrival& arrival) {
  if (arrival.bytes.empty()) return false;
  const PrefixRestore::Target& target = restore.targets_[arrival.index];
  if (target.key.part < 0) {
    restore.snapshot_.push_back(std::move(arrival.bytes));
    const bool whole =
        restore.snapshot_.size() == static_cast<size_t>(prefixes_.plan().state_pages());
    return !whole || install_snapshot(restore, target.node);
  }
  // Computed meanwhile by another sequence.
  if (prefixes_.index().page(target.node, target.key.part) != kNoPage) return true;
  const auto lease = prefixes_.pool().try_lease(1);
  if (!lease) return false;
  const PageId page = lease->pages().front();
  memory_.copy_in(page, arrival.bytes);
  prefixes_.index().set_page(target.node, target.key.part, page);
  return true;
}

bool PrefixDisk::install_snapshot(PrefixRestore& restore, NodeId node) {
  if (!prefixes_.index().snapshot(node).empty()) return true;
  const auto lease = prefixes_.pool().try_lease(prefixes_.plan().state_pages());
  if (!lease) return false;
  for (size_t i = 0; i < restore.snapshot_.size(); ++i)
    memory_.copy_in(lease->pages()[i], restore.snapshot_[i]);
  prefixes_.index().set_snapshot(node, lease->pages(), prefixes_.most_snapshots());
  return true;
}

void PrefixDisk::clear() {
  for (const auto& weak : restores_) {
    const auto restore = weak.lock();
    if (!restore) continue;
    restore->done_ = true;
    restore->read_.reset();
  }
  tier_.clear();
}

DiskStats PrefixDisk::stats() const {
  DiskStats stats = tier_.stats();
  stats.hits = hits_;
  stats.misses = misses_;
  stats.restored_tokens = restored_tokens_;
  return stats;
}

}  // namespace octavo
