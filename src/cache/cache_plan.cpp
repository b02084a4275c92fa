#include "cache/cache_plan.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/error.h"

namespace octavo {
namespace {

struct Kind {
  SoftmaxSpec spec;
  std::vector<int> layers;
};

std::vector<Kind> kinds_of(std::span<const CacheSpec> layers) {
  std::vector<Kind> kinds;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto* spec = std::get_if<SoftmaxSpec>(&layers[layer]);
    if (spec == nullptr) continue;
    auto kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.spec == *spec; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {*spec, {}});
    kind->layers.push_back(static_cast<int>(layer));
  }
  return kinds;
}

std::optional<StateGroup> states_of(std::span<const CacheSpec> layers) {
  std::optional<StateGroup> group;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto* spec = std::get_if<StateSpec>(&layers[layer]);
    if (spec == nullptr) continue;
    if (!group) group = StateGroup{.spec = *spec, .layers = {}};
    OCTAVO_CHECK(group->spec == *spec);
    group->layers.push_back(static_cast<int>(layer));
  }
  return group;
}

int divide_up(int value, int by) { return (value + by - 1) / by; }

// Layers per group, given the number of layers of each kind.
int group_size(const std::vector<int>& layers) {
  int best = 1;
  int best_waste = -1;
  for (int size = *std::ranges::max_element(layers); size >= 1; --size) {
    int waste = 0;
    for (int count : layers) waste += divide_up(count, size) * size - count;
    if (best_waste < 0 || waste < best_waste) {
      best = size;
      best_waste = waste;
    }
  }
  return best;
}

int how_many_fit(size_t page_bytes, size_t bytes) {
  return bytes == 0 ? 1 : static_cast<int>(page_bytes / bytes);
}

void place_states(CachePlan& plan) {
  StateGroup& state = *plan.state;
  const StateSpec& spec = state.spec;
  state.rows = divide_up(static_cast<int>(state.layers.size()), plan.slots);
  state.heads_per_page = how_many_fit(plan.page_bytes, spec.head_bytes());
  state.units_per_page = how_many_fit(plan.page_bytes, spec.unit_bytes());
  state.conv_column = divide_up(state.rows * spec.heads, state.heads_per_page);
  state.pages = state.conv_column + divide_up(state.rows * spec.conv_units(), state.units_per_page);
  for (size_t i = 0; i < state.layers.size(); ++i) {
    const int index = static_cast<int>(i);
    plan.places[static_cast<size_t>(state.layers[i])] = {static_cast<int>(plan.groups.size()),
                                                         index % plan.slots, index / plan.slots};
  }
}

}  // namespace

int CacheGroup::pages_held(int tokens, int step_tokens) const {
  if (spec.window == 0) return pages_for(tokens);
  const int64_t held = int64_t{spec.window} + 2 * int64_t{step_tokens} + block_tokens;
  return pages_for(static_cast<int>(std::min<int64_t>(tokens, held)));
}

StateGeometry StateGroup::geometry(int row) const {
  return {.columns = pages,
          .heads = spec.heads,
          .k_dim = spec.k_dim,
          .v_dim = spec.v_dim,
          .first_head = row * spec.heads,
          .heads_per_page = heads_per_page,
          .conv_rows = spec.conv_rows,
          .conv_units = spec.conv_units(),
          .unit_channels = spec.unit_channels(),
          .conv_dtype = spec.conv_dtype,
          .conv_column = conv_column,
          .first_unit = row * spec.conv_units(),
          .units_per_page = units_per_page};
}

int CachePlan::common_tokens() const {
  int tokens = 1;
  for (const auto& group : groups) tokens = std::lcm(tokens, group.block_tokens);
  return tokens;
}

int CachePlan::pages_held(int tokens, int step_tokens) const {
  int pages = state_copies() * state_pages();
  for (const auto& group : groups) pages += group.pages_held(tokens, step_tokens);
  return pages;
}

int CachePlan::pages_for(int tokens) const {
  int pages = state_pages();
  for (const auto& group : groups) pages += group.pages_for(tokens);
  return pages;
}

double CachePlan::bytes_per_token() const {
  double bytes = 0;
  for (const auto& group : groups)
    bytes += static_cast<double>(bytes_per_page_id()) / group.block_tokens;
  return bytes;
}

CachePlan plan_cache(std::span<const CacheSpec> layers, int block_tokens) {
  OCTAVO_CHECK(block_tokens > 0 && block_tokens % 8 == 0);
  const std::vector<Kind> kinds = kinds_of(layers);
  CachePlan plan;
  plan.state = states_of(layers);
  plan.places.resize(layers.size());
  std::vector<int> counts;
  for (const auto& kind : kinds) {
    counts.push_back(static_cast<int>(kind.layers.size()));
    plan.page_bytes = std::max(plan.page_bytes, kind.spec.geometry(block_tokens).page_bytes());
  }
  if (plan.state) {
    counts.push_back(static_cast<int>(plan.state->layers.size()));
    const StateSpec& spec = plan.state->spec;
    plan.page_bytes = std::max({plan.page_bytes, spec.head_bytes(), spec.unit_bytes()});
  }
  plan.slots = group_size(counts);
  const auto slots = static_cast<size_t>(plan.slots);
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
  if (plan.state) place_states(plan);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto* shared = std::get_if<SharedSpec>(&layers[i]);
    if (shared != nullptr) plan.places[i] = plan.places[static_cast<size_t>(shared->layer)];
  }
  return plan;
}

}  // namespace octavo
