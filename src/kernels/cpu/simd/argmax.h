// argmax.h - the likeliest token of a row of logits. No MLX.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_ISA {

// The first index of the largest number; NaN counts as minus infinity.
static int64_t argmax(const float* values, int64_t count) {
  const Vec lowest = set1(-__builtin_inff());
  Vec best = lowest;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) best = max(load(values + i), best);
  float largest = max_lane(best);
  for (; i < count; ++i) largest = values[i] > largest ? values[i] : largest;
  for (i = 0; i < count; ++i)
    if (values[i] == largest) return i;
  return 0;
}

}  // namespace octavo::cpu::OCTAVO_ISA
