#include "kernels/cpu/embedding_lora.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/add_scaled.h"
#include "kernels/cpu/convert.h"

namespace octavo::cpu {

void EmbeddingLora::add(int32_t slot, int64_t token, std::span<float> row) {
  OCTAVO_CHECK(row.size() == sums_.size());
  const LoraSlot& own = layer_.slot(slot);
  if (own.rank == 0) return;
  const DType dtype = layer_.shape.dtype;
  const PackedView a = layer_.a_of(slot);
  const auto count = static_cast<int64_t>(row.size());
  const int64_t first = token / kStripRows * own.rank * kStripRows + token % kStripRows;
  std::ranges::fill(sums_, 0.0f);
  for (int64_t r = 0; r < own.rank; ++r) {
    float b = 0;
    load_floats(at(layer_.b_of(slot), dtype, first + r * kStripRows), dtype, 1, &b);
    unpack_row(a, r, factors_.data());
    add_scaled(b, factors_.data(), count, sums_.data());
  }
  add_scaled(own.scale, sums_.data(), count, row.data());
}

}  // namespace octavo::cpu
