// elementary.h - the elementary functions of one float: the same operations in the same order as the
// vectors of kernels/cpu/simd/math.h, and so their definition (docs/arithmetic.md). No MLX.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/reference/arithmetic/flushed.h"

namespace octavo::arithmetic {

// b if either is NaN or if both are zero.
inline float max(float a, float b) { return flush(a) > flush(b) ? flush(a) : flush(b); }
inline float min(float a, float b) { return flush(a) < flush(b) ? flush(a) : flush(b); }

// To the nearest whole number, ties to even.
inline float round_even(float a) { return std::nearbyint(flush(a)); }

// 2^n for whole n in [-126, 127].
inline float pow2(float n) {
  return std::bit_cast<float>(static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
}

// 0 below -87.3; what it is at 88.3 above that; what it is at -87.3 for NaN.
inline float exp(float x) {
  const float lowest = -87.3f;
  const float bounded = max(min(88.3f, x), lowest);
  const float n = round_even(mul(bounded, 1.44269504f));
  float r = fma(n, -0.693359375f, bounded);
  r = fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fma(p, r, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  const float y = add(fma(p, mul(r, r), r), 1);
  return x < lowest ? 0 : mul(y, pow2(n));
}

// 2^x for x in [-126, 0].
inline float exp2(float x) {
  const float n = round_even(x);
  const float r = sub(x, n);
  float p = 1.535336188319500e-4f;
  p = fma(p, r, 1.339887440266574e-3f);
  p = fma(p, r, 9.618437357674640e-3f);
  p = fma(p, r, 5.550332471162809e-2f);
  p = fma(p, r, 2.402264791363012e-1f);
  p = fma(p, r, 6.931472028550421e-1f);
  return mul(fma(p, r, 1), pow2(n));
}

// -1 for NaN.
inline float tanh(float x) {
  const float magnitude = max(x, sub(0, x));
  if (magnitude < 0.625f) {
    const float z = mul(x, x);
    float p = -5.70498872745e-3f;
    p = fma(p, z, 2.06390887954e-2f);
    p = fma(p, z, -5.37397155531e-2f);
    p = fma(p, z, 1.33314422036e-1f);
    p = fma(p, z, -3.33332819422e-1f);
    return fma(mul(p, z), x, x);
  }
  const float wide = sub(1, div(2, add(exp(add(magnitude, magnitude)), 1)));
  return x < 0 ? sub(0, wide) : wide;
}

// 1 for NaN.
inline float sigmoid(float x) { return div(1, add(1, exp(sub(0, x)))); }

// log(1 + exp(x)).
inline float softplus(float x) {
  const float u = exp(min(x, sub(0, x)));
  // log(1 + u) = 2 atanh(u / (2 + u))
  const float s = div(u, add(2, u));
  const float z = mul(s, s);
  float p = 1.0f / 17;
  for (int k = 15; k >= 1; k -= 2) p = fma(p, z, 1.0f / static_cast<float>(k));
  return fma(add(s, s), p, max(0, x));
}

inline float silu(float x) { return div(x, add(1, exp(sub(0, x)))); }

inline float gelu_tanh(float x) {
  const float cube = mul(mul(x, x), x);
  const float inner = mul(0.7978845608f, fma(0.044715f, cube, x));
  return mul(mul(0.5f, x), add(1, tanh(inner)));
}

// 1 for NaN.
inline float erf(float x) {
  const float magnitude = max(x, sub(0, x));
  const float square = mul(x, x);
  if (magnitude < 0.927734375f) {
    float p = fma(-5.96761703e-4f, square, 4.99119423e-3f);
    p = fma(p, square, -2.67681349e-2f);
    p = fma(p, square, 1.12819925e-1f);
    p = fma(p, square, -3.76125336e-1f);
    p = fma(p, square, 1.28379166e-1f);
    return fma(p, x, x);
  }
  float r = fma(-1.72853470e-5f, magnitude, 3.83197126e-4f);
  r = fma(r, square, fma(-3.88396438e-3f, magnitude, 2.42546219e-2f));
  r = fma(r, magnitude, -1.06777877e-1f);
  r = fma(r, magnitude, -6.34846687e-1f);
  r = fma(r, magnitude, -1.28717512e-1f);
  r = fma(r, magnitude, sub(0, magnitude));
  const float wide = sub(1, exp(r));
  return x < 0 ? sub(0, wide) : wide;
}

inline float gelu(float x) { return mul(mul(0.5f, x), add(1, erf(mul(x, 0.70710678f)))); }

}  // namespace octavo::arithmetic
