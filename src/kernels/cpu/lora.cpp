#include "kernels/cpu/lora.h"

#include <algorithm>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

int64_t padded_rank(int64_t rank) { return (rank + kStripRows - 1) / kStripRows * kStripRows; }

// The rows of one slot, to be prepared for A.
struct SlotRows {
  RowsJob x;
  size_t group;  // of the plan
};

bool has_adapter(const LoraView& layer, const LoraGroup& group) {
  return layer.shape.slots > 0 && layer.slot(group.slot).rank > 0;
}

// Groups with an adapter for some part. Prepared rows follow one another in scratch memory.
std::vector<SlotRows> slot_rows(const RowsJob& x, const LoraArgs& args, Arithmetic arithmetic) {
  const LoraPlan& plan = *args.plan;
  std::vector<SlotRows> all;
  int64_t bytes = 0;
  const auto bytes_of = [&](int64_t rows) {
    return kernels().prepared_bytes(rows, x.cols, arithmetic);
  };
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const LoraGroup& group = plan.groups[g];
    if (std::ranges::none_of(args.layers, [&](const auto& l) { return has_adapter(l, group); }))
      continue;
    SlotRows rows{x, g};
    rows.x.gathered = plan.order.data() + group.first;
    rows.x.rows = group.count;
    rows.x.arithmetic = arithmetic;
    bytes += bytes_of(group.count);
    all.push_back(rows);
  }
  std::byte* memory = scratch(Scratch::kRows, bytes);
  for (SlotRows& rows : all) {
    rows.x.prepared = memory;
    memory += bytes_of(rows.x.rows);
  }
  return all;
}

void prepare_slots(const std::vector<SlotRows>& all) {
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

Arithmetic arithmetic_of_a(DType x, const LoraArgs& args) {
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

}  // namespace

LoraProducts::LoraProducts(const RowsJob& x, const LoraArgs& args) {
  const LoraPlan& plan = *args.plan;
  OCTAVO_CHECK(args.layers.size() <= kMaxJoined);
  const std::vector<SlotRows> all = slot_rows(x, args, arithmetic_of_a(x.dtype, args));
  int64_t inner_floats = 0;
  for (const LoraView& layer : args.layers)
    for (const SlotRows& rows : all)
      if (has_adapter(layer, plan.groups[rows.group]))
        inner_floats += rows.x.rows * padded_rank(layer.slot(plan.groups[rows.group].slot).rank);
  auto* inner = reinterpret_cast<float*>(scratch(Scratch::kLora, inner_floats * 4));
  std::vector<LinearJob> products;
  for (size_t part = 0; part < args.layers.size(); ++part) {
    const LoraView& layer = args.layers[part];
    for (const SlotRows& rows : all) {
      const LoraGroup& group = plan.groups[rows.group];
      if (!has_adapter(layer, group)) continue;
      const LoraSlot& slot = layer.slot(group.slot);
      const int64_t stride = padded_rank(slot.rank);
      groups_[part].resize(plan.groups.size());
      groups_[part][rows.group] = {.rank = slot.rank,
                                   .inner = inner,
                                   .stride = stride,
                                   .b = layer.b_of(group.slot),
                                   .scale = slot.scale,
                                   .first = group.first};
      products.push_back({.prepared = rows.x.prepared,
                          .arithmetic = rows.x.arithmetic,
                          .rows = rows.x.rows,
                          .weight = layer.a_of(group.slot),
                          .out = inner,
                          .out_stride = stride});
      inner += rows.x.rows * stride;
    }
    if (!groups_[part].empty())
      jobs_[part] = {.groups = groups_[part].data(),
                     .order = plan.order.data(),
                     .groups_of = plan.groups_of.data(),
                     .block_begins = plan.block_begins.data(),
                     .block_places = plan.block_places.data(),
                     .dtype = layer.shape.dtype};
  }
  prepare_slots(all);
  run_products(products);
}

int64_t lora_scratch_bytes(int64_t rows, int64_t cols, int slots, int max_rank) {
  const int64_t padded = (cols + kUnitCols - 1) / kUnitCols * kUnitCols;
  const int64_t groups = std::min<int64_t>(slots, rows);
  const auto parts = static_cast<int64_t>(kMaxJoined);
  return groups * 2 * kRowBlock * padded * 4 + parts * rows * padded_rank(max_rank) * 4;
}

}  // namespace octavo::cpu
