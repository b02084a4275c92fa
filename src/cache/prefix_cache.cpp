#include "cache/prefix_cache.h"

#include <algorithm>
#include <numeric>

namespace octavo {
namespace {

int common_block(const CachePlan& plan) {
  int block = 0;
  for (const auto& group : plan.groups) block = std::gcd(block, group.block_tokens);
  return block;
}

// A power of two of common pages, at least as long as a sequence whose pages cost what its state
// does.
int snapshot_interval(const CachePlan& plan) {
  if (!plan.state) return 0;
  const double per_token = plan.bytes_per_token();
  const auto bytes = static_cast<double>(plan.bytes_per_state());
  int tokens = plan.common_tokens();
  while (per_token > 0 && tokens * per_token < bytes && tokens < (1 << 20)) tokens *= 2;
  return tokens;
}

// The pages of one group along a path, and how far back they reach from each edge.
struct GroupPath {
  const CacheGroup* group;
  std::vector<PageId> pages;
  std::vector<int> run;  // run[p]: pages that are there without a gap up to and with page p

  // The first page that a row behind `pages_before` pages still looks at.
  int first_needed(int pages_before) const {
    const int window = group->spec.window;
    if (window == 0) return 0;
    return std::max(0, pages_before * group->block_tokens - window + 1) / group->block_tokens;
  }
  bool serves(int tokens) const {
    if (tokens % group->block_tokens != 0) return false;
    const int count = tokens / group->block_tokens;
    return run[static_cast<size_t>(count - 1)] >= count - first_needed(count);
  }
};

}  // namespace

PrefixCache::PrefixCache(const CachePlan& plan, PagePool& pool, int hash_bits)
    : plan_(plan),
      pool_(pool),
      index_(pool, static_cast<int>(plan.groups.size()), hash_bits),
      hash_block_tokens_(common_block(plan)),
      snapshot_tokens_(snapshot_interval(plan)) {}

int PrefixCache::most_snapshots() const {
  return plan_.state ? pool_.page_count() / 2 / plan_.state_pages() : 0;
}

PrefixHit PrefixCache::longest_hit(std::span<const NodeId> path) {
  std::vector<GroupPath> groups;
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    GroupPath along{&plan_.groups[g], {}, {}};
    const int blocks = along.group->block_tokens / hash_block_tokens_;  // per page
    for (size_t end = static_cast<size_t>(blocks); end <= path.size();
         end += static_cast<size_t>(blocks)) {
      const PageId page = index_.page(path[end - 1], static_cast<int>(g));
      const int before = along.run.empty() ? 0 : along.run.back();
      along.pages.push_back(page);
      along.run.push_back(page == kNoPage ? 0 : before + 1);
    }
    groups.push_back(std::move(along));
  }
  PrefixHit hit{0, std::vector<std::vector<PageId>>(groups.size())};
  for (int tokens = static_cast<int>(path.size()) * hash_block_tokens_; tokens > 0;
       tokens -= hash_block_tokens_) {
    const NodeId node = path[static_cast<size_t>(tokens / hash_block_tokens_ - 1)];
    if (plan_.state && index_.snapshot(node).empty()) continue;
    if (!std::ranges::all_of(groups, [&](const auto& g) { return g.serves(tokens); })) continue;
    hit.tokens = tokens;
    if (plan_.state) {
      const auto snapshot = index_.snapshot(node);
      hit.state.assign(snapshot.begin(), snapshot.end());
      index_.touch_snapshot(node);
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      const int count = tokens / groups[g].group->block_tokens;
      auto& pages = groups[g].pages;
      pages.resize(static_cast<size_t>(count));
      std::fill_n(pages.begin(), groups[g].first_needed(count), kNoPage);
      hit.pages[g] = std::move(pages);
    }
    break;
  }
  return hit;
}

}  // namespace octavo
