// state_item.h - one head's recurrence over the rows of one sequence. No MLX.
#pragma once

#include <cstdint>

namespace octavo::cpu {

struct StateItem {
  int64_t head = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  const float* from = nullptr;  // the head's state; null: zeros
  float* to = nullptr;
};

}  // namespace octavo::cpu
