// lora.h - the definition of LoRA adapters, one number at a time (docs/arithmetic.md). A x is a product
// with dense weights (dense_product.h). No MLX.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/reference/arithmetic/flushed.h"

namespace octavo::arithmetic {

// product + scale * (inner . b), for one output: inner is A x, b is the output's row of B.
inline float add_lora(float product, std::span<const float> inner, std::span<const float> b,
                      float scale) {
  float sum = 0;
  for (size_t r = 0; r < inner.size(); ++r) sum = fma(inner[r], b[r], sum);
  return fma(sum, scale, product);
}

}  // namespace octavo::arithmetic
