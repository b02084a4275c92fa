// dot.h - dot products in one fixed order: 32 lanes, each summed in index order, then folded
// pairwise, then the tail in index order. The order depends on `count` alone, so a row's result
// does not depend on the rows beside it.
#pragma once

#include <cstdint>

namespace octavo::cpu {

float dot(const float* a, const float* b, int64_t count);

// out[i] = dot(a + i * stride, b, count) for i in 0..3, bit for bit, reading b once.
void dot4(const float* a, int64_t stride, const float* b, int64_t count, float* out);

// y += factor * x
void axpy(float factor, const float* x, int64_t count, float* y);

}  // namespace octavo::cpu
