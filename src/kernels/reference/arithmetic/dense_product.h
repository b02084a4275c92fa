// dense_product.h - the definition of products with weights that are not quantised, one number at a
// time (docs/arithmetic.md). Every instruction set must give these bits. No MLX.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/reference/arithmetic/flushed.h"

namespace octavo::arithmetic {

// Zeros follow the last input up to a multiple of this. They count: adding zero to a negative zero
// gives a positive one.
inline constexpr size_t kInputsMultiple = 64;

inline size_t padded_inputs(size_t count) {
  return (count + kInputsMultiple - 1) / kInputsMultiple * kInputsMultiple;
}

// One output of bfloat16 inputs x and weights w, as many of each.
inline float dot_bf16(std::span<const uint16_t> x, std::span<const uint16_t> w) {
  constexpr size_t kTile = 32;
  const auto at = [](std::span<const uint16_t> numbers, size_t k) {
    return k < numbers.size() ? from_bf16(numbers[k]) : 0.0f;
  };
  float sum = 0;
  for (size_t first = 0; first < padded_inputs(x.size()); first += kTile) {
    float even = 0, odd = 0;
    for (size_t k = first; k < first + kTile; k += 2) {
      even = fma(at(x, k), at(w, k), even);
      odd = fma(at(x, k + 1), at(w, k + 1), odd);
    }
    sum = add(sum, add(even, odd));
  }
  return sum;
}

// One output of inputs and weights of other types, widened to float32.
inline float dot_f32(std::span<const float> x, std::span<const float> w) {
  std::array<float, 16> lanes = {};
  for (size_t k = 0; k < padded_inputs(x.size()); ++k) {
    float& lane = lanes[k % lanes.size()];
    lane = k < x.size() ? fma(x[k], w[k], lane) : fma(0, 0, lane);
  }
  for (size_t width = lanes.size() / 2; width > 0; width /= 2)
    for (size_t i = 0; i < width; ++i) lanes[i] = add(lanes[i], lanes[i + width]);
  return lanes[0];
}

}  // namespace octavo::arithmetic
