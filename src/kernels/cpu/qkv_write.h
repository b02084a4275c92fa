// qkv_write.h (cpu) - prepares q and writes k and v to the pages, split over threads.
#pragma once

#include <cstdint>

#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/token_rows.h"

namespace octavo::cpu {

// Multiplies q by 1 + beta * log(1 + floor(position / period)).
struct PositionScale {
  const int32_t* positions = nullptr;  // [T]
  float beta = 0;                      // 0: none
  float period = 1;
};

struct QkvWriteArgs {
  PagedBatch batch;  // without pages: q only
  int64_t tokens = 0;
  QkvJob rows;  // rotation, q_scale, slots and layout are filled in here
  RopeJob rope;
  PositionScale position_scale;
};
void qkv_write(const QkvWriteArgs& args);

}  // namespace octavo::cpu
