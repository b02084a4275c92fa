#include "kernels/cpu/lora.h"

#include <algorithm>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/strip_claims.h"

namespace octavo::cpu {
namespace {

int64_t padded_rank(int64_t rank) { return (rank + kStripRows - 1) / kStripRows * kStripRows; }

// The rows that are multiplied by one slot's A.
struct SlotRows {
  RowsJob x;
  size_t group;  // of the plan
};

// By place of the plan: the row of x.
std::vector<int32_t> rows_by_place(const RowsJob& x, const LoraPlan& plan) {
  std::vector<int32_t> rows = plan.order;
  if (x.gathered == nullptr) return rows;
  for (int32_t& row : rows) row = x.gathered[row];
  return rows;
}

bool has_adapter(const LoraView& layer, const LoraGroup& group) {
  return layer.shape.slots > 0 && layer.slot(group.slot).rank > 0;
}

// One for each group with an adapter for some part.
std::vector<SlotRows> slot_rows(const RowsJob& x, const LoraArgs& args) {
  std::vector<SlotRows> all;
  for (size_t g = 0; g < args.plan->groups.size(); ++g) {
    const LoraGroup& group = args.plan->groups[g];
    if (std::ranges::any_of(args.layers, [&](const auto& l) { return has_adapter(l, group); }))
      all.push_back({x, g});
  }
  return all;
}

// Leaves each slot its own rows only. They follow one another in scratch memory.
void prepare_own_rows(std::vector<SlotRows>& all, const LoraPlan& plan, Arithmetic arithmetic) {
  if (all.empty()) return;
  const std::vector<int32_t> by_place = rows_by_place(all.front().x, plan);
  int64_t bytes = 0;
  const auto bytes_of = [&](const RowsJob& x) {
    return kernels().prepared_bytes(x.rows, x.cols, arithmetic);
  };
  for (SlotRows& rows : all) {
    const LoraGroup& group = plan.groups[rows.group];
    rows.x.gathered = by_place.data() + group.first;
    rows.x.rows = group.count;
    rows.x.arithmetic = arithmetic;
    bytes += bytes_of(rows.x);
  }
  std::byte* memory = scratch(Scratch::kRows, bytes);
  for (SlotRows& rows : all) {
    rows.x.prepared = memory;
    memory += bytes_of(rows.x);
  }
  struct Block {
    const RowsJob* x;
    int64_t first;
  };
  std::vector<Block> blocks;
  for (const SlotRows& rows : all)
    for (int64_t first = 0; first < rows.x.rows; first += kRowBlock)
      blocks.push_back({&rows.x, first});
  compute_pool().parallel_for(
      static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
        prepare_thread();
        for (int64_t i = begin; i < end; ++i) {
          const Block& block = blocks[static_cast<size_t>(i)];
          kernels().prepare(*block.x, block.first,
                            std::min(block.first + kRowBlock, block.x->rows));
        }
      });
}

// Whether one product with the A of all slots reads little that is not needed. Long reads are
// faster than one short read per slot.
bool uses_most_slots(const LoraView& layer, const LoraPlan& plan) {
  int used = 0;
  for (const LoraGroup& group : plan.groups) {
    if (!has_adapter(layer, group)) continue;
    if (padded_rank(layer.slot(group.slot).rank) != layer.shape.padded_rank()) return false;
    ++used;
  }
  return 2 * used > layer.shape.slots;
}

LinearJob product_with(const PackedView& a, const RowsJob& x, float* inner, int64_t stride) {
  return {.prepared = x.prepared,
          .arithmetic = x.arithmetic,
          .rows = x.rows,
          .weight = a,
          .out = inner,
          .out_stride = stride};
}

}  // namespace

Arithmetic lora_arithmetic(DType x, const LoraArgs& args) {
  const LoraView* first = nullptr;
  for (const LoraView& layer : args.layers) {
    if (layer.shape.slots == 0) continue;
    if (first == nullptr) first = &layer;
    OCTAVO_CHECK(layer.shape.dtype == first->shape.dtype);
  }
  OCTAVO_CHECK(first != nullptr);
  const PackedLayout layout = first->shape.a_layout(first->shape.max_rank);
  return arithmetic_of(x, {&layout});
}

// A tile multiplies 16 rows at a time, also where fewer are needed.
bool lora_shares_rows(int64_t rows, Arithmetic arithmetic) {
  const bool has_tiles = kernels().configure_tiles != nullptr;
  return has_tiles && arithmetic == Arithmetic::kBFloat16 && rows <= kFewRows;
}

LoraProducts::LoraProducts(const RowsJob& x, const LoraArgs& args) {
  const LoraPlan& plan = *args.plan;
  OCTAVO_CHECK(args.layers.size() <= kMaxJoined);
  std::vector<SlotRows> all = slot_rows(x, args);
  const bool has_all_rows = x.prepared != nullptr;
  if (!has_all_rows) prepare_own_rows(all, plan, lora_arithmetic(x.dtype, args));
  int64_t inner_floats = 0;
  for (const LoraView& layer : args.layers)
    inner_floats += layer.shape.padded_rank() *
                    (has_all_rows ? x.rows * layer.shape.slots : std::ssize(plan.order));
  auto* inner = reinterpret_cast<float*>(scratch(Scratch::kLora, inner_floats * 4));
  std::vector<LinearJob> products;
  for (size_t part = 0; part < args.layers.size(); ++part) {
    const LoraView& layer = args.layers[part];
    const bool is_joined = has_all_rows && uses_most_slots(layer, plan);
    const int64_t joined_stride = layer.shape.slots * layer.shape.padded_rank();
    if (is_joined) products.push_back(product_with(layer.all_a(), x, inner, joined_stride));
    for (const SlotRows& rows : all) {
      const LoraGroup& group = plan.groups[rows.group];
      if (!has_adapter(layer, group)) continue;
      const LoraSlot& slot = layer.slot(group.slot);
      const int64_t stride = is_joined ? joined_stride : padded_rank(slot.rank);
      groups_[part].resize(plan.groups.size());
      groups_[part][rows.group] = {
          .rank = slot.rank,
          .inner = is_joined ? inner + group.slot * layer.shape.padded_rank() : inner,
          .stride = stride,
          .b = layer.b_of(group.slot),
          .scale = slot.scale,
          .first = group.first};
      if (is_joined) continue;
      products.push_back(product_with(layer.a_of(group.slot), rows.x, inner, stride));
      inner += rows.x.rows * stride;
    }
    if (is_joined) inner += x.rows * joined_stride;
    if (!groups_[part].empty())
      jobs_[part] = {.groups = groups_[part].data(),
                     .order = plan.order.data(),
                     .groups_of = plan.groups_of.data(),
                     .block_begins = plan.block_begins.data(),
                     .block_places = plan.block_places.data(),
                     .dtype = layer.shape.dtype,
                     .has_all_rows = has_all_rows};
  }
  run_products(products);
}

int64_t lora_scratch_bytes(int64_t rows, int64_t cols, int slots, int max_rank, bool may_share) {
  const int64_t padded = (cols + kUnitCols - 1) / kUnitCols * kUnitCols;
  const int64_t groups = std::min<int64_t>(slots, rows);
  const auto parts = static_cast<int64_t>(kMaxJoined);
  const int64_t shared_rows = may_share ? slots * std::min(rows, kFewRows) : 0;
  const int64_t inner_rows = std::max(rows, shared_rows);
  return groups * 2 * kRowBlock * padded * 4 + parts * inner_rows * padded_rank(max_rank) * 4;
}

}  // namespace octavo::cpu
