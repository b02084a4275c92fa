// pack_scales.h - the scales of packed weights: written from a file's rows, and read again. No MLX.
#pragma once

#include "kernels/weights/packed_weight.h"

namespace octavo {

// Of one block, with its padding; layout.scale_kind is not kNone.
int64_t packed_scale_bytes(const PackedLayout& layout);

// Writes the scales of one source row and one block of inputs to `lane` (0 .. 15) of `out`, the block.
void write_scales(const WeightView& source, const PackedLayout& layout, int64_t row, int64_t block,
                  int lane, std::byte* out);

struct ScaleBias {
  float scale;
  float bias;
};
// Of a group of a block.
ScaleBias read_scale(const PackedLayout& layout, const std::byte* scales, int64_t group, int lane);

}  // namespace octavo
