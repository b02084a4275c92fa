#include "kernels/cpu/token_rows.h"

#include <cmath>

#include "base/error.h"

namespace octavo::cpu {

void Rotations::fill(const RopeJob& rope, int64_t begin, int64_t end) {
  const auto count = static_cast<size_t>((end - begin) * rope.pairs);
  cosine.resize(count);
  sine.resize(count);
  size_t at = 0;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t i = 0; i < rope.pairs; ++i, ++at) {
      const float angle = static_cast<float>(rope.positions[t]) * rope.inverse_frequencies[i];
      cosine[at] = std::cos(angle) * rope.magnitude;
      sine[at] = std::sin(angle) * rope.magnitude;
    }
  }
}

std::vector<TokenSlot> token_slots(const PagedBatch& batch, int64_t tokens) {
  const int64_t block = batch.geometry.block_tokens;
  std::vector<TokenSlot> slots;
  slots.reserve(static_cast<size_t>(tokens));
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t count = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
    const int64_t start = batch.context_lens[s] - count;
    OCTAVO_CHECK(start >= 0);
    for (int64_t position = start; position < start + count; ++position) {
      const int64_t column = position / block;
      OCTAVO_CHECK(column < batch.table_columns);
      const int64_t page = batch.block_tables[s * batch.table_columns + column];
      OCTAVO_CHECK(page >= 0 && page < batch.page_count);
      slots.push_back({batch.pages + page * batch.page_stride, position - column * block});
    }
  }
  OCTAVO_CHECK(static_cast<int64_t>(slots.size()) == tokens);
  return slots;
}

}  // namespace octavo::cpu
