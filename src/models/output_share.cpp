#include "models/output_share.h"

#include <algorithm>

namespace octavo {

int OutputShare::part(int full, int unit) const {
  if (is_whole()) return full;
  const int units = (full + unit - 1) / unit;
  return (units + ranks - 1) / ranks * unit;
}

int OutputShare::real_of(int any_rank, int full, int unit) const {
  const int each = part(full, unit);
  return std::clamp(full - any_rank * each, 0, each);
}

std::vector<int> OutputShare::picks(int full, int unit) const {
  std::vector<int> picks;
  if (is_whole()) return picks;
  const int each = part(full, unit);
  for (int i = 0; i < each; ++i) picks.push_back(std::min(rank * each + i, full - 1));
  return picks;
}

std::vector<int> picked_rows(std::span<const int> order, std::span<const int> picks) {
  if (picks.empty()) return {order.begin(), order.end()};
  if (order.empty()) return {picks.begin(), picks.end()};
  std::vector<int> rows;
  rows.reserve(picks.size());
  for (const int pick : picks) rows.push_back(order[static_cast<size_t>(pick)]);
  return rows;
}

std::vector<int> rows_of_heads(std::span<const int> heads, int size, int first) {
  std::vector<int> rows;
  for (const int head : heads)
    for (int row = 0; row < size; ++row) rows.push_back(first + head * size + row);
  return rows;
}

}  // namespace octavo
