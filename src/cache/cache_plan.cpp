#include "cache/cache_plan.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace octavo {
namespace {

struct Kind {
  SoftmaxSpec spec;
  std::vector<int> layers;
};

std::vector<Kind> kinds_of(std::span<const SoftmaxSpec> layers) {
  std::vector<Kind> kinds;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const Kind& k) { return k.spec == layers[layer]; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {layers[layer], {}});
    kind->layers.push_back(static_cast<int>(layer));
  }
  return kinds;
}

int groups_for(const Kind& kind, int size) {
  return (static_cast<int>(kind.layers.size()) + size - 1) / size;
}

int group_size(const std::vector<Kind>& kinds) {
  size_t largest = 1;
  for (const auto& kind : kinds) largest = std::max(largest, kind.layers.size());
  int best = 1;
  int best_waste = -1;
  for (int size = static_cast<int>(largest); size >= 1; --size) {
    int waste = 0;
    for (const auto& kind : kinds) {
      waste += groups_for(kind, size) * size - static_cast<int>(kind.layers.size());
    }
    if (best_waste < 0 || waste < best_waste) {
      best = size;
      best_waste = waste;
    }
  }
  return best;
}

}  // namespace

int CacheGroup::pages_held(int tokens, int step_tokens) const {
  if (spec.window == 0) return pages_for(tokens);
  const int64_t held = int64_t{spec.window} + 2 * int64_t{step_tokens} + block_tokens;
  return pages_for(static_cast<int>(std::min<int64_t>(tokens, held)));
}

int CachePlan::pages_held(int tokens, int step_tokens) const {
  int pages = 0;
  for (const auto& group : groups) pages += group.pages_held(tokens, step_tokens);
  return pages;
}

int CachePlan::pages_for(int tokens) const {
  int pages = 0;
  for (const auto& group : groups) pages += group.pages_for(tokens);
  return pages;
}

double CachePlan::bytes_per_token() const {
  double bytes = 0;
  for (const auto& group : groups)
    bytes += static_cast<double>(bytes_per_page_id()) / group.block_tokens;
  return bytes;
}

CachePlan plan_cache(std::span<const SoftmaxSpec> layers, int block_tokens) {
  OCTAVO_CHECK(block_tokens > 0 && block_tokens % 8 == 0);
  const std::vector<Kind> kinds = kinds_of(layers);
  CachePlan plan;
  plan.slots = group_size(kinds);
  plan.places.resize(layers.size());
  const auto slots = static_cast<size_t>(plan.slots);
  for (const auto& kind : kinds) {
    plan.page_bytes = std::max(plan.page_bytes, kind.spec.geometry(block_tokens).page_bytes());
  }
  for (const auto& kind : kinds) {
    const size_t tokens = plan.page_bytes / kind.spec.bytes_per_token() / 8 * 8;
    for (size_t first = 0; first < kind.layers.size(); first += slots) {
      CacheGroup group{kind.spec, static_cast<int>(tokens), {}};
      for (size_t i = first; i < std::min(first + slots, kind.layers.size()); ++i) {
        plan.places[static_cast<size_t>(kind.layers[i])] = {static_cast<int>(plan.groups.size()),
                                                            static_cast<int>(i - first)};
        group.layers.push_back(kind.layers[i]);
      }
      plan.groups.push_back(std::move(group));
    }
  }
  return plan;
}

}  // namespace octavo
