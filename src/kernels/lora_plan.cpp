#include "kernels/lora_plan.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace octavo {

LoraPlan make_lora_plan(std::span<const int32_t> slots) {
  constexpr int32_t kBlockRows = 16;
  LoraPlan plan;
  plan.slots.assign(slots.begin(), slots.end());
  for (size_t row = 0; row < slots.size(); ++row) {
    OCTAVO_CHECK(slots[row] >= kNoLora);
    if (slots[row] != kNoLora) plan.order.push_back(static_cast<int32_t>(row));
  }
  const auto slot_of = [&](int32_t row) { return slots[static_cast<size_t>(row)]; };
  std::ranges::stable_sort(plan.order, {}, slot_of);

  std::vector<std::vector<int32_t>> blocks((slots.size() + kBlockRows - 1) / kBlockRows);
  for (size_t place = 0; place < plan.order.size(); ++place) {
    const int32_t row = plan.order[place];
    if (plan.groups.empty() || plan.groups.back().slot != slot_of(row))
      plan.groups.push_back({slot_of(row), static_cast<int32_t>(place), 0});
    ++plan.groups.back().count;
    plan.groups_of.push_back(static_cast<int32_t>(plan.groups.size()) - 1);
    blocks[static_cast<size_t>(row / kBlockRows)].push_back(static_cast<int32_t>(place));
  }
  plan.block_begins = {0};
  for (const std::vector<int32_t>& block : blocks) {
    plan.block_places.insert(plan.block_places.end(), block.begin(), block.end());
    plan.block_begins.push_back(static_cast<int32_t>(plan.block_places.size()));
  }
  return plan;
}

}  // namespace octavo
