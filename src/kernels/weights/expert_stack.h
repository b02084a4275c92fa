// expert_stack.h - one matrix per expert of a layer, packed one after the other.
#pragma once

#include "kernels/weights/weight.h"

namespace octavo {

// `count` matrices [rows, cols] = [outputs, inputs] of one format.
struct ExpertStack {
  int count;
  int rows;
  int cols;
  PackedLayout layout;  // of each
  mx::array packed;     // uint8, from make_weight_buffer: expert e starts at e * layout.bytes()

  PackedView view(int expert) const {
    return {layout, packed.data<std::byte>() + expert * layout.bytes()};
  }
  size_t bytes() const { return packed.nbytes(); }
  std::string describe() const { return layout.describe(); }
};

// Allocates `count` matrices of `rows` rows with the format of `source`, whose numbers are not
// read. pack_expert fills them.
ExpertStack make_expert_stack(int count, const WeightView& source, int rows);

// Packs `source`, of the shape and format the stack was made for, as matrix `expert`. With a row
// order of stack.rows entries, row r is row row_order[r] of the source.
void pack_expert(ExpertStack& stack, int expert, const WeightView& source, RowOrder row_order = {});

// All matrices as float32 [count, rows, cols], for the reference implementations.
mx::array dequantize(const ExpertStack& stack);

}  // namespace octavo
