#include "kernels/cpu/expert_rows.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {

ExpertRows gather_by_expert(std::span<const int32_t> ids, std::span<const float> weights,
                            int64_t top_k, int64_t experts) {
  std::vector<int64_t> next(static_cast<size_t>(experts));  // first counts, then the next free row
  for (const int32_t id : ids) {
    OCTAVO_CHECK(id >= 0 && id < experts);
    ++next[static_cast<size_t>(id)];
  }
  ExpertRows out;
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t rows = next[static_cast<size_t>(e)];
    next[static_cast<size_t>(e)] = out.padded_rows;
    if (rows == 0) continue;
    out.groups.push_back({.expert = e, .begin = out.padded_rows, .rows = rows});
    out.padded_rows += (rows + kRowBlock - 1) / kRowBlock * kRowBlock;
    out.most_rows = std::max(out.most_rows, rows);
  }
  out.tokens.resize(static_cast<size_t>(out.padded_rows));
  out.weights.resize(static_cast<size_t>(out.padded_rows));
  for (size_t pair = 0; pair < ids.size(); ++pair) {
    const auto row = static_cast<size_t>(next[static_cast<size_t>(ids[pair])]++);
    out.tokens[row] = static_cast<int32_t>(pair / static_cast<size_t>(top_k));
    out.weights[row] = weights[pair];
  }
  return out;
}

std::vector<int32_t> pairs_of(const ExpertRows& rows, std::span<const int32_t> ids,
                              int64_t experts) {
  std::vector<int64_t> next(static_cast<size_t>(experts));  // the next free row
  for (const ExpertGroup& group : rows.groups)
    next[static_cast<size_t>(group.expert)] = group.begin;
  std::vector<int32_t> pairs(static_cast<size_t>(rows.padded_rows));
  for (size_t pair = 0; pair < ids.size(); ++pair) {
    const auto row = static_cast<size_t>(next[static_cast<size_t>(ids[pair])]++);
    pairs[row] = static_cast<int32_t>(pair);
  }
  return pairs;
}

}  // namespace octavo::cpu
