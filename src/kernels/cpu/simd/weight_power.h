// weight_power.h - the power of two that turns a score into a weight, the same bits on every set.
// No MLX.
#pragma once

#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// x = floor(x) + fraction; the fraction is rounded down, as AVX-512's instruction does.
#ifdef OCTAVO_SIMD_AVX512
OCTAVO_INLINE Reg reg_fraction(Reg x) {
  return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
// p times 2^floor(x)
OCTAVO_INLINE Reg reg_scale_by_floor(Reg p, Reg x) { return _mm512_scalef_ps(p, x); }
OCTAVO_INLINE Reg reg_bounded(Reg x) { return reg_max(x, reg_set1(-126)); }
#else
#if defined(OCTAVO_SIMD_AVX2)
OCTAVO_INLINE Reg reg_floor(Reg x) { return _mm256_floor_ps(x); }
#elif defined(OCTAVO_SIMD_NEON)
OCTAVO_INLINE Reg reg_floor(Reg x) { return vrndmq_f32(x); }
#else
OCTAVO_INLINE Reg reg_floor(Reg x) {
  const Reg n = reg_round(x);
  return reg_if_less(x, n, reg_sub(n, reg_set1(1)), n);
}
#endif
OCTAVO_INLINE Reg reg_fraction(Reg x) {
  const Reg n = reg_floor(x);
  const Reg rounded = reg_sub(x, n);
  // Inexact for x in (-0.5, 0) only: then the fraction is at least 0.5.
  const Reg below = reg_sub(rounded, reg_set1(0x1p-24f));
  return reg_if_less(x, reg_add(rounded, n), below, rounded);
}
OCTAVO_INLINE Reg reg_scale_by_floor(Reg p, Reg x) { return reg_mul(p, reg_pow2(reg_floor(x))); }
// 2^128 is infinity.
OCTAVO_INLINE Reg reg_bounded(Reg x) { return reg_min(reg_max(x, reg_set1(-126)), reg_set1(128)); }
#endif

// 2^x for x <= 0 to 3e-6, far below the rounding of the weights to bfloat16; 2^-126 for NaN. x may
// be above 0 if a score is so large that its product with the scale is not exact.
OCTAVO_INLINE Reg exp2_weight(Reg x) {
  x = reg_bounded(x);
  const Reg r = reg_fraction(x);
  Reg p = reg_set1(1.34266866e-2f);
  p = reg_fma(p, r, reg_set1(5.22424690e-2f));
  p = reg_fma(p, r, reg_set1(2.41280213e-1f));
  p = reg_fma(p, r, reg_set1(6.93044841e-1f));
  p = reg_fma(p, r, reg_set1(1));
  return reg_scale_by_floor(p, x);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
