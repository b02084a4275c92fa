// batch_checks.h - checks what the rows of a step see; aborts on a violation. No MLX.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "scheduler/batch.h"

namespace octavo {

// Sequence `s` has all its rows in the step, and each sees all of them.
inline void check_whole(const Batch& batch, size_t s) {
  const int rows = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
  OCTAVO_CHECK(rows == batch.context_lens[s]);
  for (int i = 0; i < rows; ++i) {
    const auto row = static_cast<size_t>(batch.cu_seqlens_q[s] + i);
    OCTAVO_CHECK(batch.positions[row] == i && batch.last_visible.at(row) == rows - 1);
  }
}

// Request::second_text of the rows [begin, begin + count): all from there on have type 1.
inline int second_text_of(const Batch& batch, size_t begin, size_t count) {
  if (batch.token_types.empty()) return 0;
  size_t first = 0;
  while (first < count && batch.token_types.at(begin + first) == 0) ++first;
  for (size_t i = first; i < count; ++i) OCTAVO_CHECK(batch.token_types.at(begin + i) == 1);
  return first == count ? 0 : static_cast<int>(first);
}

// Rows that see later ones have them in the step. Rows without an image have the same position on all
// axes, at most their index. `whole_prompts`: of an encoder.
inline void check_positions(const Batch& batch, bool whole_prompts) {
  const auto rows = static_cast<size_t>(batch.rows());
  OCTAVO_CHECK(batch.last_visible.empty() || batch.last_visible.size() == rows);
  OCTAVO_CHECK(batch.rope_positions.empty() || batch.rope_positions.size() == 3 * rows);
  std::vector<bool> has_image(rows, false);
  for (const ImageRows& part : batch.image_rows) {
    for (int i = 0; i < part.count; ++i) has_image.at(static_cast<size_t>(part.row + i)) = true;
  }
  for (size_t s = 0; s + 1 < batch.cu_seqlens_q.size(); ++s) {
    const int end = batch.context_lens[s];
    if (whole_prompts) check_whole(batch, s);
    for (auto row = static_cast<size_t>(batch.cu_seqlens_q[s]);
         row < static_cast<size_t>(batch.cu_seqlens_q[s + 1]); ++row) {
      if (!batch.last_visible.empty()) {
        OCTAVO_CHECK(batch.last_visible[row] >= batch.positions[row] &&
                     batch.last_visible[row] < end);
        OCTAVO_CHECK(has_image[row] || whole_prompts ||
                     batch.last_visible[row] == batch.positions[row]);
      }
      if (batch.rope_positions.empty() || has_image[row]) continue;
      const int time = batch.rope_positions[row];
      OCTAVO_CHECK(time <= batch.positions[row] && time >= 0);
      OCTAVO_CHECK(batch.rope_positions[rows + row] == time &&
                   batch.rope_positions[2 * rows + row] == time);
    }
  }
}

}  // namespace octavo
