#include "kernels/weights/expert_stack.h"

#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/runtime/device_buffer.h"
#include "kernels/runtime/weight_buffer.h"

namespace octavo {

ExpertStack make_expert_stack(int count, const WeightView& source, int rows) {
  PackedLayout layout = packed_layout(source);
  layout.rows = rows;
  mx::array packed = make_weight_buffer(
      {count, static_cast<int>(layout.strips()), static_cast<int>(layout.strip_bytes())},
      mx::uint8);
  return {count, rows, static_cast<int>(source.cols), layout, std::move(packed)};
}

void pack_expert(ExpertStack& stack, int expert, const WeightView& source, RowOrder row_order) {
  OCTAVO_CHECK(expert >= 0 && expert < stack.count);
  OCTAVO_CHECK(source.format == stack.layout.format && source.dtype == stack.layout.dtype);
  OCTAVO_CHECK(source.cols == stack.cols);
  OCTAVO_CHECK(!row_order.empty() || source.rows == stack.rows);
  auto* out = stack.packed.data<std::byte>() + expert * stack.layout.bytes();
  pack_weight(source, stack.layout, row_order, out);
}

mx::array dequantize(const ExpertStack& stack) {
  mx::array out = make_device_buffer({stack.count, stack.rows, stack.cols}, mx::float32);
  auto* target = out.data<float>();
  compute_pool().parallel_for(int64_t{stack.count} * stack.rows, 64,
                              [&](int64_t begin, int64_t end) {
                                for (int64_t row = begin; row < end; ++row) {
                                  unpack_row(stack.view(static_cast<int>(row / stack.rows)),
                                             row % stack.rows, target + row * stack.cols);
                                }
                              });
  return out;
}

}  // namespace octavo
