#include "base/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace octavo {
namespace {

constexpr size_t kCompared = 160;  // bytes compared per name: the cost is quadratic

}  // namespace

size_t edits_between(std::string_view a, std::string_view b) {
  a = a.substr(0, kCompared);
  b = b.substr(0, kCompared);
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::vector<std::string_view> nearest_names(std::string_view name,
                                            std::span<const std::string> known, size_t count) {
  std::vector<std::pair<size_t, std::string_view>> ranked;
  ranked.reserve(known.size());
  for (const std::string_view other : known) ranked.emplace_back(edits_between(name, other), other);
  count = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count),
                    ranked.end());
  std::vector<std::string_view> nearest;
  for (size_t i = 0; i < count; ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

}  // namespace octavo
