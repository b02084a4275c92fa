// argmax.h - the most likely token of a row of logits. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The largest of `count` numbers; NaN counts as minus infinity.
OCTAVO_INLINE float largest_of(const float* values, int64_t count) {
  constexpr int kChains = 4;  // a maximum takes as long as several loads
  Vec best[kChains];
  for (auto& chain : best) chain = set1(-__builtin_inff());
  int64_t i = 0;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
    for (int c = 0; c < kChains; ++c) best[c] = max(load(values + i + c * kLanes), best[c]);
  }
  for (; i + kLanes <= count; i += kLanes) best[0] = max(load(values + i), best[0]);
  float largest = max_lane(max(max(best[0], best[1]), max(best[2], best[3])));
  for (; i < count; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

// The first index of the largest number; NaN counts as minus infinity.
static int64_t argmax(const float* values, int64_t count) {
  float largest = -__builtin_inff();
  int64_t block = 0;  // the first that contains it
  for (int64_t i = 0; i < count; i += kLogitBlock) {
    const float found = largest_of(values + i, count - i < kLogitBlock ? count - i : kLogitBlock);
    if (found > largest) {
      largest = found;
      block = i;
    }
  }
  for (int64_t i = block; i < count; ++i)
    if (values[i] == largest) return i;
  return 0;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
