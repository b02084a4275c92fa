// math.h - exp, tanh and the activations made of them, the same arithmetic on every instruction set
// (the C library's differ between machines). Their definition for one number is
// kernels/reference/arithmetic/elementary.h; docs/arithmetic.md has their errors. No MLX.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// exp(x): 0 below -87.3 (so that minus infinity is exactly 0), near the largest float above 88.3.
OCTAVO_INLINE Vec exp(Vec x) {
  const Vec lowest = set1(-87.3f);
  const Vec bounded = max(min(set1(88.3f), x), lowest);
  const Vec n = round_even(mul(bounded, set1(1.44269504f)));
  // x - n ln 2 in two steps: the first constant has few bits, so n times it is exact.
  Vec r = fma(n, set1(-0.693359375f), bounded);
  r = fma(n, set1(2.12194440e-4f), r);
  Vec p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  const Vec y = add(fma(p, mul(r, r), r), set1(1));
  return if_less(x, lowest, zero(), mul(y, pow2(n)));
}

// 2^x for x in [-126, 0], exact at whole x. It has two thirds of the operations of exp and takes
// most of a draw's time.
OCTAVO_INLINE Vec exp2(Vec x) {
  const Vec n = round_even(x);
  const Vec r = sub(x, n);
  Vec p = set1(1.535336188319500e-4f);
  p = fma(p, r, set1(1.339887440266574e-3f));
  p = fma(p, r, set1(9.618437357674640e-3f));
  p = fma(p, r, set1(5.550332471162809e-2f));
  p = fma(p, r, set1(2.402264791363012e-1f));
  p = fma(p, r, set1(6.931472028550421e-1f));
  return mul(fma(p, r, set1(1)), pow2(n));
}

OCTAVO_INLINE Vec tanh(Vec x) {
  const Vec minus = sub(zero(), x);
  const Vec magnitude = max(x, minus);
  const Vec wide = sub(set1(1), div(set1(2), add(exp(add(magnitude, magnitude)), set1(1))));
  const Vec signed_wide = if_less(x, zero(), sub(zero(), wide), wide);
  // Near zero the form above would lose precision.
  const Vec z = mul(x, x);
  Vec p = set1(-5.70498872745e-3f);
  p = fma(p, z, set1(2.06390887954e-2f));
  p = fma(p, z, set1(-5.37397155531e-2f));
  p = fma(p, z, set1(1.33314422036e-1f));
  p = fma(p, z, set1(-3.33332819422e-1f));
  const Vec narrow = fma(mul(p, z), x, x);
  return if_less(magnitude, set1(0.625f), narrow, signed_wide);
}

OCTAVO_INLINE Vec sigmoid(Vec x) { return div(set1(1), add(set1(1), exp(sub(zero(), x)))); }

// log(1 + exp(x)).
OCTAVO_INLINE Vec softplus(Vec x) {
  const Vec u = exp(min(x, sub(zero(), x)));
  // log(1 + u) = 2 atanh(u / (2 + u)); the quotient is at most a third, so the series is short.
  const Vec s = div(u, add(set1(2), u));
  const Vec z = mul(s, s);
  Vec p = set1(1.0f / 17);
  p = fma(p, z, set1(1.0f / 15));
  p = fma(p, z, set1(1.0f / 13));
  p = fma(p, z, set1(1.0f / 11));
  p = fma(p, z, set1(1.0f / 9));
  p = fma(p, z, set1(1.0f / 7));
  p = fma(p, z, set1(1.0f / 5));
  p = fma(p, z, set1(1.0f / 3));
  p = fma(p, z, set1(1));
  return fma(add(s, s), p, max(zero(), x));
}

OCTAVO_INLINE Vec silu(Vec x) { return div(x, add(set1(1), exp(sub(zero(), x)))); }

OCTAVO_INLINE Vec gelu_tanh(Vec x) {
  const Vec cube = mul(mul(x, x), x);
  const Vec inner = mul(set1(0.7978845608f), fma(set1(0.044715f), cube, x));
  return mul(mul(set1(0.5f), x), add(set1(1), tanh(inner)));
}

// The error function: Juffa's polynomials.
OCTAVO_INLINE Vec erf(Vec x) {
  const Vec magnitude = max(x, sub(zero(), x));
  const Vec square = mul(x, x);
  Vec r = fma(set1(-1.72853470e-5f), magnitude, set1(3.83197126e-4f));
  r = fma(r, square, fma(set1(-3.88396438e-3f), magnitude, set1(2.42546219e-2f)));
  r = fma(r, magnitude, set1(-1.06777877e-1f));
  r = fma(r, magnitude, set1(-6.34846687e-1f));
  r = fma(r, magnitude, set1(-1.28717512e-1f));
  r = fma(r, magnitude, sub(zero(), magnitude));
  const Vec wide = sub(set1(1), exp(r));
  const Vec signed_wide = if_less(x, zero(), sub(zero(), wide), wide);
  Vec p = fma(set1(-5.96761703e-4f), square, set1(4.99119423e-3f));
  p = fma(p, square, set1(-2.67681349e-2f));
  p = fma(p, square, set1(1.12819925e-1f));
  p = fma(p, square, set1(-3.76125336e-1f));
  p = fma(p, square, set1(1.28379166e-1f));
  return if_less(magnitude, set1(0.927734375f), fma(p, x, x), signed_wide);
}

OCTAVO_INLINE Vec gelu(Vec x) {
  return mul(mul(set1(0.5f), x), add(set1(1), erf(mul(x, set1(0.70710678f)))));
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
