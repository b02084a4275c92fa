#include "kernels/lora_shape.h"

#include "base/error.h"

namespace octavo {

PackedLayout LoraShape::a_layout(int rank) const {
  return packed_layout({.rows = rank, .cols = inputs, .dtype = dtype});
}

int64_t LoraShape::a_bytes() const { return a_layout(max_rank).bytes(); }

int64_t LoraShape::padded_rank() const {
  return (int64_t{max_rank} + kStripRows - 1) / kStripRows * kStripRows;
}

int64_t LoraShape::b_bytes() const {
  const int64_t strips = (outputs + kStripRows - 1) / kStripRows;
  return kLoraHeaderBytes + strips * max_rank * kStripRows * static_cast<int64_t>(size_of(dtype));
}

int64_t LoraShape::bytes() const { return slots * (a_bytes() + b_bytes()); }

PackedView LoraView::a_of(int32_t index) const {
  return {shape.a_layout(slot(index).rank), a + index * shape.a_bytes()};
}

PackedView LoraView::all_a() const {
  const PackedLayout layout = shape.a_layout(static_cast<int>(shape.slots * shape.padded_rank()));
  OCTAVO_CHECK(layout.bytes() == shape.slots * shape.a_bytes());
  return {layout, a};
}

}  // namespace octavo
