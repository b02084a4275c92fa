#include "kernels/cpu/state_batch.h"

#include <algorithm>

#include "base/error.h"

namespace octavo::cpu {

int64_t StateBatch::parts(int64_t sequence) const {
  const int64_t columns = geometry.columns;
  const int64_t sets = table_columns / columns - 1;
  if (sets < 2 || table[sequence * table_columns + 2 * columns] < 0) return 1;
  const int64_t rows = cu_seqlens_q[sequence + 1] - cu_seqlens_q[sequence];
  OCTAVO_CHECK(rows <= sets);
  return rows;
}

StateBlock StateBatch::head(int64_t sequence, int64_t head, int64_t part) const {
  const int64_t block_index = geometry.first_head + head;
  const int64_t per_page = geometry.heads_per_page;
  return block(sequence, part, block_index / per_page,
               block_index % per_page * static_cast<int64_t>(geometry.head_bytes()));
}

StateBlock StateBatch::unit(int64_t sequence, int64_t unit, int64_t part) const {
  const int64_t block_index = geometry.first_unit + unit;
  const int64_t per_page = geometry.units_per_page;
  return block(sequence, part, geometry.conv_column + block_index / per_page,
               block_index % per_page * static_cast<int64_t>(geometry.unit_bytes()));
}

std::vector<StateBatch::Head> StateBatch::heads() const {
  std::vector<int64_t> order;
  for (int64_t s = 0; s < sequences; ++s)
    if (cu_seqlens_q[s] < cu_seqlens_q[s + 1]) order.push_back(s);
  const auto rows = [this](int64_t s) { return cu_seqlens_q[s + 1] - cu_seqlens_q[s]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rows(a) > rows(b); });
  std::vector<Head> heads;
  heads.reserve(order.size() * static_cast<size_t>(geometry.heads));
  for (const int64_t s : order)
    for (int64_t head = 0; head < geometry.heads; ++head) heads.push_back({s, head});
  return heads;
}

StateBlock StateBatch::block(int64_t sequence, int64_t part, int64_t column, int64_t offset) const {
  // A part reads the state that the part before it wrote.
  const int32_t* sets = table + sequence * table_columns + part * geometry.columns;
  const int64_t from = sets[column];
  const int64_t to = sets[geometry.columns + column];
  OCTAVO_CHECK(from >= -1 && from < page_count && to >= 0 && to < page_count);
  return {.from = from < 0 ? nullptr : pages + from * page_stride + offset,
          .to = pages + to * page_stride + offset};
}

}  // namespace octavo::cpu
