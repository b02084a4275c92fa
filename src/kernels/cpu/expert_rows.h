// expert_rows.h (cpu) - the tokens of a batch gathered by expert. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace octavo::cpu {

// One expert's tokens: rows [begin, begin + rows) of the gathered order.
struct ExpertGroup {
  int64_t expert;
  int64_t begin;  // a multiple of kRowBlock
  int64_t rows;
};

struct ExpertRows {
  std::vector<ExpertGroup> groups;  // of the experts that have tokens, in ascending order
  int64_t padded_rows = 0;          // end of the last group's last block of rows
  int64_t most_rows = 0;            // of one group
  // By gathered row; the padding between groups holds 0.
  std::vector<int32_t> tokens;  // ascending within a group
  std::vector<float> weights;
};

// ids, weights: [tokens, top_k].
ExpertRows gather_by_expert(std::span<const int32_t> ids, std::span<const float> weights,
                            int64_t top_k, int64_t experts);

// The index in `ids` of every gathered row of gather_by_expert(ids, ...); 0 in the padding.
std::vector<int32_t> pairs_of(const ExpertRows& rows, std::span<const int32_t> ids,
                              int64_t experts);

}  // namespace octavo::cpu
