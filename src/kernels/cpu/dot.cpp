#include "kernels/cpu/dot.h"

#include "kernels/cpu/clones.h"

namespace octavo::cpu {
namespace {

constexpr int kLanes = 32;

// Sixteen floats at any address.
using Vec = float __attribute__((vector_size(64), aligned(4), may_alias));

// Folds 32 lanes pairwise: 32 to 16 to 8 to 4 to 2 to 1.
inline float fold(const float* lanes) {
  float half[kLanes / 2];
  for (int i = 0; i < 16; ++i) half[i] = lanes[i] + lanes[i + 16];
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) half[i] += half[i + width];
  }
  return half[0];
}

inline float tail(const float* a, const float* b, int64_t begin, int64_t count) {
  float sum = 0;
  for (int64_t i = begin; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

OCTAVO_CLONES
float dot(const float* a, const float* b, int64_t count) {
  float lanes[kLanes] = {};
  Vec low = {};
  Vec high = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    low += *reinterpret_cast<const Vec*>(a + i) * *reinterpret_cast<const Vec*>(b + i);
    high += *reinterpret_cast<const Vec*>(a + i + 16) * *reinterpret_cast<const Vec*>(b + i + 16);
  }
  *reinterpret_cast<Vec*>(lanes) = low;
  *reinterpret_cast<Vec*>(lanes + 16) = high;
  return fold(lanes) + tail(a, b, i, count);
}

OCTAVO_CLONES
void dot4(const float* a, int64_t stride, const float* b, int64_t count, float* out) {
  Vec low[4] = {};
  Vec high[4] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec b_low = *reinterpret_cast<const Vec*>(b + i);
    const Vec b_high = *reinterpret_cast<const Vec*>(b + i + 16);
    for (int row = 0; row < 4; ++row) {
      const float* x = a + row * stride + i;
      low[row] += *reinterpret_cast<const Vec*>(x) * b_low;
      high[row] += *reinterpret_cast<const Vec*>(x + 16) * b_high;
    }
  }
  for (int row = 0; row < 4; ++row) {
    float lanes[kLanes];
    *reinterpret_cast<Vec*>(lanes) = low[row];
    *reinterpret_cast<Vec*>(lanes + 16) = high[row];
    out[row] = fold(lanes) + tail(a + row * stride, b, i, count);
  }
}

OCTAVO_CLONES
void axpy(float factor, const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

}  // namespace octavo::cpu
