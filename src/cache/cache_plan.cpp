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

// The layers of each stage, in order.
using LayersByStage = std::vector<std::vector<int>>;

LayersByStage by_stage(std::span<const int> layers, std::span<const int> cuts) {
  LayersByStage stages(cuts.size() + 1);
  for (const int layer : layers) {
    const auto stage = std::ranges::upper_bound(cuts, layer) - cuts.begin();
    stages[static_cast<size_t>(stage)].push_back(layer);
  }
  return stages;
}

void place_states(CachePlan& plan, std::span<const int> cuts) {
  StateGroup& state = *plan.state;
  const StateSpec& spec = state.spec;
  const LayersByStage stages = by_stage(state.layers, cuts);
  for (size_t s = 0; s < stages.size(); ++s) {
    const SlotRange slots = plan.stages[s];
    for (size_t i = 0; i < stages[s].size(); ++i) {
      const int index = static_cast<int>(i);
      const int row = index / slots.count;
      plan.places[static_cast<size_t>(stages[s][i])] = {static_cast<int>(plan.groups.size()),
                                                        slots.first + index % slots.count, row};
      state.rows = std::max(state.rows, row + 1);
    }
  }
  state.heads_per_page = how_many_fit(plan.page_bytes, spec.head_bytes());
  state.units_per_page = how_many_fit(plan.page_bytes, spec.unit_bytes());
  state.conv_column = divide_up(state.rows * spec.heads, state.heads_per_page);
  state.pages = state.conv_column + divide_up(state.rows * spec.conv_units(), state.units_per_page);
}

// The slots that each stage needs if the layers of kind k are divided into groups[k] groups.
// counts[k][s]: layers of kind k in stage s.
std::vector<int> slots_for(const std::vector<std::vector<int>>& counts,
                           const std::vector<int>& groups) {
  std::vector<int> slots(counts.front().size(), 0);
  for (size_t k = 0; k < counts.size(); ++k) {
    for (size_t s = 0; s < slots.size(); ++s)
      slots[s] = std::max(slots[s], divide_up(counts[k][s], groups[k]));
  }
  return slots;
}

// The places in all slots and groups; those without a layer are wasted.
int64_t places_of(const std::vector<std::vector<int>>& counts, const std::vector<int>& groups) {
  const std::vector<int> slots = slots_for(counts, groups);
  return std::accumulate(slots.begin(), slots.end(), int64_t{0}) *
         std::accumulate(groups.begin(), groups.end(), int64_t{0});
}

// The groups of each kind, so that few places are wasted: the best with one size for all kinds, and
// then improved one kind at a time.
std::vector<int> choose_groups(const std::vector<std::vector<int>>& counts) {
  int most = 1;
  for (const auto& stages : counts) most = std::max(most, *std::ranges::max_element(stages));
  std::vector<int> best;
  for (int size = most; size >= 1; --size) {
    std::vector<int> groups;
    for (const auto& stages : counts)
      groups.push_back(std::max(1, divide_up(*std::ranges::max_element(stages), size)));
    if (best.empty() || places_of(counts, groups) < places_of(counts, best)) best = groups;
  }
  for (bool better = true; better;) {
    better = false;
    for (size_t k = 0; k < counts.size(); ++k) {
      std::vector<int> other = best;
      for (other[k] = 1; other[k] <= most; ++other[k]) {
        if (places_of(counts, other) >= places_of(counts, best)) continue;
        best = other;
        better = true;
      }
    }
  }
  return best;
}

// Sets the slots of every stage.
void plan_slots(CachePlan& plan, const std::vector<Kind>& kinds, std::span<const int> cuts) {
  std::vector<std::vector<int>> counts;
  const auto add = [&](const std::vector<int>& layers) {
    counts.emplace_back();
    for (const auto& stage : by_stage(layers, cuts))
      counts.back().push_back(static_cast<int>(stage.size()));
  };
  for (const auto& kind : kinds) add(kind.layers);
  if (plan.state) add(plan.state->layers);
  std::vector<int> slots;
  if (cuts.empty()) {
    std::vector<int> totals;
    for (const auto& stages : counts) totals.push_back(stages.front());
    slots = {group_size(totals)};
  } else {
    slots = slots_for(counts, choose_groups(counts));
  }
  for (const int count : slots) {
    plan.stages.push_back({plan.slots, count});
    plan.slots += count;
  }
}

// Gives every layer of the kind a slot of its stage.
void place_kind(CachePlan& plan, const Kind& kind, std::span<const int> cuts) {
  const size_t tokens = plan.page_bytes / kind.spec.bytes_per_token() / 8 * 8;
  const size_t first_group = plan.groups.size();
  const LayersByStage stages = by_stage(kind.layers, cuts);
  for (size_t s = 0; s < stages.size(); ++s) {
    const SlotRange slots = plan.stages[s];
    for (size_t i = 0; i < stages[s].size(); ++i) {
      const int index = static_cast<int>(i);
      const size_t group = first_group + static_cast<size_t>(index / slots.count);
      const int slot = slots.first + index % slots.count;
      if (group == plan.groups.size())
        plan.groups.push_back({kind.spec, static_cast<int>(tokens), {}});
      std::vector<int>& layers = plan.groups[group].layers;
      if (layers.size() <= static_cast<size_t>(slot))
        layers.resize(static_cast<size_t>(slot) + 1, -1);
      layers[static_cast<size_t>(slot)] = stages[s][i];
      plan.places[static_cast<size_t>(stages[s][i])] = {static_cast<int>(group), slot};
    }
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

CachePlan CachePlan::of_stage(size_t stage) const {
  CachePlan own = *this;
  own.slots = stages.at(stage).count;
  return own;
}

CachePlan plan_cache(std::span<const CacheSpec> layers, int block_tokens,
                     std::span<const int> cuts) {
  OCTAVO_CHECK(block_tokens > 0 && block_tokens % 8 == 0);
  for (const int cut : cuts) OCTAVO_CHECK(may_cut(layers, cut));
  const std::vector<Kind> kinds = kinds_of(layers);
  CachePlan plan;
  plan.state = states_of(layers);
  plan.places.resize(layers.size());
  for (const auto& kind : kinds)
    plan.page_bytes = std::max(plan.page_bytes, kind.spec.geometry(block_tokens).page_bytes());
  if (plan.state) {
    const StateSpec& spec = plan.state->spec;
    plan.page_bytes = std::max({plan.page_bytes, spec.head_bytes(), spec.unit_bytes()});
  }
  plan_slots(plan, kinds, cuts);
  for (const auto& kind : kinds) place_kind(plan, kind, cuts);
  if (plan.state) place_states(plan, cuts);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto* shared = std::get_if<SharedSpec>(&layers[i]);
    if (shared != nullptr) plan.places[i] = plan.places[static_cast<size_t>(shared->layer)];
  }
  return plan;
}

bool may_cut(std::span<const CacheSpec> layers, int layer) {
  if (layer <= 0 || layer >= static_cast<int>(layers.size())) return false;
  return std::ranges::none_of(layers.subspan(static_cast<size_t>(layer)), [&](const auto& spec) {
    const auto* shared = std::get_if<SharedSpec>(&spec);
    return shared != nullptr && shared->layer < layer;
  });
}

}  // namespace octavo
