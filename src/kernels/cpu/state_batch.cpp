#include "kernels/cpu/state_batch.h"

#include <algorithm>

#include "base/error.h"

namespace octavo::cpu {

StateBlock StateBatch::head(int64_t sequence, int64_t head) const {
  const int64_t block_index = geometry.first_head + head;
  const int64_t per_page = geometry.heads_per_page;
  return block(sequence, block_index / per_page,
               block_index % per_page * static_cast<int64_t>(geometry.head_bytes()));
}

StateBlock StateBatch::unit(int64_t sequence, int64_t unit) const {
  const int64_t block_index = geometry.first_unit + unit;
  const int64_t per_page = geometry.units_per_page;
  return block(sequence, geometry.conv_column + block_index / per_page,
               block_index % per_page * static_cast<int64_t>(geometry.unit_bytes()));
}

std::vector<StateItem> StateBatch::head_items() const {
  std::vector<StateItem> items;
  items.reserve(static_cast<size_t>(sequences * geometry.heads));
  for (int64_t s = 0; s < sequences; ++s) {
    StateItem item{.row_begin = cu_seqlens_q[s], .row_end = cu_seqlens_q[s + 1]};
    if (item.row_begin == item.row_end) continue;
    for (item.head = 0; item.head < geometry.heads; ++item.head) {
      const StateBlock block = head(s, item.head);
      item.from = reinterpret_cast<const float*>(block.from);
      item.to = reinterpret_cast<float*>(block.to);
      items.push_back(item);
    }
  }
  std::stable_sort(items.begin(), items.end(), [](const StateItem& a, const StateItem& b) {
    return a.row_end - a.row_begin > b.row_end - b.row_begin;
  });
  return items;
}

StateBlock StateBatch::block(int64_t sequence, int64_t column, int64_t offset) const {
  const int32_t* row = table + sequence * 2 * geometry.columns;
  const int64_t from = row[column];
  const int64_t to = row[geometry.columns + column];
  OCTAVO_CHECK(from >= -1 && from < page_count && to >= 0 && to < page_count);
  return {.from = from < 0 ? nullptr : pages + from * page_stride + offset,
          .to = pages + to * page_stride + offset};
}

}  // namespace octavo::cpu
