// pieces.h (cpu) - how work on rows is divided among threads. No MLX.
#pragma once

#include <algorithm>
#include <cstdint>

namespace octavo::cpu {

inline constexpr int64_t kPieceElements = 16384;  // a second thread does not pay off below this

inline int64_t rows_per_piece(int64_t row_elements) {
  return std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row_elements));
}

}  // namespace octavo::cpu
