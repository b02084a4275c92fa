// add_scaled.h - multiples of rows, added up with one rounding per operation. No MLX.
#pragma once

#include <cstdint>

namespace octavo::cpu {

// sums[k] += factor * from[k]. The product is rounded before it is added, on every instruction set.
void add_scaled(float factor, const float* from, int64_t count, float* sums);

}  // namespace octavo::cpu
