#include "kernels/cpu/expert_lora.h"

#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {

std::shared_ptr<const LoraPlan> plan_expert_lora(const LoraPlan& tokens, const ExpertRows& rows,
                                                 int64_t experts) {
  std::vector<int32_t> slots(static_cast<size_t>(rows.padded_rows), kNoLora);
  for (const ExpertGroup& group : rows.groups) {
    for (int64_t row = group.begin; row < group.begin + group.rows; ++row) {
      const auto i = static_cast<size_t>(row);
      const int32_t slot = tokens.slots[static_cast<size_t>(rows.tokens[i])];
      if (slot != kNoLora) slots[i] = static_cast<int32_t>(slot * experts + group.expert);
    }
  }
  return std::make_shared<const LoraPlan>(make_lora_plan(slots));
}

std::optional<LoraJob> ExpertLoraProducts::job(size_t part, const ExpertGroup& group) const {
  const LoraJob* all = products_.job(part);
  if (all == nullptr) return std::nullopt;
  const int64_t first = group.begin / kRowBlock;
  const int64_t end = (group.begin + group.rows + kRowBlock - 1) / kRowBlock;
  if (all->block_begins[first] == all->block_begins[end]) return std::nullopt;
  LoraJob own = *all;
  own.first_row = group.begin;
  return own;
}

}  // namespace octavo::cpu
