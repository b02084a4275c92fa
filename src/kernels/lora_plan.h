// lora_plan.h - the rows of a step, grouped by the slot of their LoRA adapter. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo {

inline constexpr int32_t kNoLora = -1;  // the slot of a row without an adapter

// The rows of one slot: LoraPlan::order[first .. first + count), ascending.
struct LoraGroup {
  int32_t slot;
  int32_t first;
  int32_t count;
};

// A place is an index into `order`.
struct LoraPlan {
  std::vector<int32_t> slots;      // by row; kNoLora: none
  std::vector<int32_t> order;      // rows with an adapter, by slot, then ascending
  std::vector<int32_t> groups_of;  // by place: an index into `groups`
  std::vector<LoraGroup> groups;   // by slot
  // The places of the rows of block b (16 rows) are block_places[block_begins[b] ..
  // block_begins[b + 1]), ascending, so that rows of one slot follow one another.
  std::vector<int32_t> block_begins;
  std::vector<int32_t> block_places;

  int64_t rows() const { return static_cast<int64_t>(slots.size()); }
};

LoraPlan make_lora_plan(std::span<const int32_t> slots);

}  // namespace octavo
