#include "kernels/metal/attention_plans.h"

#include <algorithm>
#include <cstring>

namespace octavo::metal {
namespace {

template <typename Item>
mx::array item_array(Encoder& encoder, const std::vector<Item>& items) {
  std::vector<int32_t> numbers(items.size() * sizeof(Item) / sizeof(int32_t));
  std::memcpy(numbers.data(), items.data(), items.size() * sizeof(Item));
  return encoder.temporary(numbers, mx::int32);
}

AttentionPlan make_plan(const AttentionBatch& batch, Encoder& encoder) {
  const AttentionGrid grid = plan_attention_grid(batch);
  AttentionPlan plan;
  for (const AttentionWave& wave : grid.waves)
    plan.waves.push_back({wave.kernel, wave.width, static_cast<uint32_t>(wave.items.size()),
                          item_array(encoder, wave.items)});
  plan.merge_count = static_cast<uint32_t>(grid.merges.size());
  if (!grid.merges.empty()) plan.merges = item_array(encoder, grid.merges);
  // Bounded by kMostPartialBytes.
  plan.partial_floats = static_cast<int32_t>(partial_floats(grid, batch.v_dim));
  return plan;
}

}  // namespace

const AttentionPlan& AttentionPlans::find(const AttentionBatch& batch, Encoder& encoder) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.group == batch.group && entry.kv_heads == batch.kv_heads &&
           entry.window == batch.window && entry.most_tiles == batch.most_tiles &&
           entry.most_vector == batch.most_vector && entry.v_dim == batch.v_dim &&
           std::ranges::equal(entry.last_visible, batch.last_visible);
  });
  if (found == entries_.end()) {
    entries_.push_back({batch.group,
                        batch.kv_heads,
                        batch.window,
                        batch.most_tiles,
                        batch.most_vector,
                        batch.v_dim,
                        {batch.last_visible.begin(), batch.last_visible.end()},
                        make_plan(batch, encoder)});
    return entries_.back().plan;
  }
  for (const AttentionPlan::Wave& wave : found->plan.waves) encoder.keep(wave.items);
  if (found->plan.merges) encoder.keep(*found->plan.merges);
  return found->plan;
}

}  // namespace octavo::metal
