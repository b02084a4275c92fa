#include "cache/prefix_cache.h"

#include <algorithm>
#include <numeric>

#include "cache/group_path.h"

namespace octavo {
namespace {

int common_block(const CachePlan& plan) {
  int block = 0;
  for (const auto& group : plan.groups) block = std::gcd(block, group.block_tokens);
  return block;
}

// A power of two of common pages, at least as long as a sequence whose pages cost as much as its
// state.
int snapshot_interval(const CachePlan& plan) {
  if (!plan.state) return 0;
  const double per_token = plan.bytes_per_token();
  const auto bytes = static_cast<double>(plan.bytes_per_state());
  int tokens = plan.common_tokens();
  while (per_token > 0 && tokens * per_token < bytes && tokens < (1 << 20)) tokens *= 2;
  return tokens;
}

}  // namespace

PrefixCache::PrefixCache(const CachePlan& plan, PagePool& pool, int hash_bits)
    : plan_(plan),
      pool_(pool),
      index_(pool, static_cast<int>(plan.groups.size()), hash_bits),
      hash_block_tokens_(common_block(plan)),
      snapshot_tokens_(snapshot_interval(plan)) {}

void PrefixCache::observe(PrefixObserver& observer) {
  std::vector<int> blocks_per_page;
  for (const CacheGroup& group : plan_.groups)
    blocks_per_page.push_back(group.block_tokens / hash_block_tokens_);
  blocks_per_page.push_back(plan_.common_tokens() / hash_block_tokens_);
  observer.begin(plan_);
  index_.observe(observer, std::move(blocks_per_page));
}

int PrefixCache::most_snapshots() const {
  return plan_.state ? pool_.page_count() / 2 / plan_.state_pages() : 0;
}

PrefixHit PrefixCache::longest_hit(std::span<const NodeId> path, bool with_state) {
  const bool needs_snapshot = plan_.state.has_value() && with_state;
  std::vector<GroupPath> groups;
  std::vector<std::vector<PageId>> pages(plan_.groups.size());
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    groups.emplace_back(plan_.groups[g]);
    const auto blocks = static_cast<size_t>(plan_.groups[g].block_tokens / hash_block_tokens_);
    for (size_t end = blocks; end <= path.size(); end += blocks) {
      pages[g].push_back(index_.page(path[end - 1], static_cast<int>(g)));
      groups[g].add(pages[g].back() != kNoPage);
    }
  }
  PrefixHit hit{0, std::vector<std::vector<PageId>>(groups.size())};
  for (int tokens = static_cast<int>(path.size()) * hash_block_tokens_; tokens > 0;
       tokens -= hash_block_tokens_) {
    const NodeId node = path[static_cast<size_t>(tokens / hash_block_tokens_ - 1)];
    if (needs_snapshot && index_.snapshot(node).empty()) continue;
    if (!std::ranges::all_of(groups, [&](const auto& g) { return g.serves(tokens); })) continue;
    hit.tokens = tokens;
    if (needs_snapshot) {
      const auto snapshot = index_.snapshot(node);
      hit.state.assign(snapshot.begin(), snapshot.end());
      index_.touch_snapshot(node);
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      const int count = tokens / plan_.groups[g].block_tokens;
      pages[g].resize(static_cast<size_t>(count));
      std::fill_n(pages[g].begin(), groups[g].first_needed(count), kNoPage);
      hit.pages[g] = std::move(pages[g]);
    }
    break;
  }
  return hit;
}

}  // namespace octavo
