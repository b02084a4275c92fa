// fma_sse2.h - a fused multiply-add of four floats with SSE2 only, for x86 processors without the
// instruction. The thread must flush denormals to zero (isa.h). No MLX.
#pragma once

#ifdef __SSE2__

#include <emmintrin.h>

#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// `sum` is p + c rounded to double. If it is halfway between two floats but the exact sum is not,
// moves it by one unit towards the exact sum, so that rounding it to float gives the right one.
static __attribute__((noinline)) __m128d off_halfway(__m128d sum, __m128d p, __m128d c) {
  const __m128d c_part = _mm_sub_pd(sum, p);
  const __m128d p_part = _mm_sub_pd(sum, c_part);
  const __m128d rest = _mm_add_pd(_mm_sub_pd(p, p_part), _mm_sub_pd(c, c_part));  // exact
  const __m128d zero = _mm_setzero_pd();
  const __m128d above = _mm_cmpgt_pd(rest, zero);
  const __m128d below = _mm_cmplt_pd(rest, zero);
  const __m128d negative = _mm_cmplt_pd(sum, zero);
  const __m128i grows =
      _mm_castpd_si128(_mm_or_pd(_mm_andnot_pd(negative, above), _mm_and_pd(negative, below)));
  const __m128i shrinks =
      _mm_castpd_si128(_mm_or_pd(_mm_andnot_pd(negative, below), _mm_and_pd(negative, above)));
  // True is -1.
  const __m128i bits = _mm_sub_epi64(_mm_castpd_si128(sum), grows);
  const __m128i low = _mm_set1_epi64x(0x1fffffff), half = _mm_set1_epi64x(0x10000000);
  const __m128i at_half = _mm_cmpeq_epi32(_mm_and_si128(_mm_castpd_si128(sum), low), half);
  const __m128i halfway = _mm_shuffle_epi32(at_half, 0xa0);  // the lower half of each decides
  const __m128i moved = _mm_add_epi64(bits, shrinks);
  return _mm_castsi128_pd(_mm_or_si128(_mm_and_si128(halfway, moved),
                                       _mm_andnot_si128(halfway, _mm_castpd_si128(sum))));
}

// a * b + c, rounded once. The product of two floats is exact in double; of the sum's two roundings,
// to double and to float, the first changes the result only if it ends halfway between two floats.
// Not inlined: kernels would be several times larger and take minutes to compile.
static __attribute__((noinline)) __m128 fma_sse2(__m128 a, __m128 b, __m128 c) {
  const auto upper = [](__m128 v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const __m128d p0 = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b));
  const __m128d p1 = _mm_mul_pd(upper(a), upper(b));
  const __m128d c0 = _mm_cvtps_pd(c), c1 = upper(c);
  __m128d sum0 = _mm_add_pd(p0, c0), sum1 = _mm_add_pd(p1, c1);
  const __m128 lower_halves = _mm_shuffle_ps(_mm_castpd_ps(sum0), _mm_castpd_ps(sum1), 0x88);
  const __m128i low_bits =
      _mm_and_si128(_mm_castps_si128(lower_halves), _mm_set1_epi32(0x1fffffff));
  if (_mm_movemask_epi8(_mm_cmpeq_epi32(low_bits, _mm_set1_epi32(0x10000000))) != 0) {
    sum0 = off_halfway(sum0, p0, c0);
    sum1 = off_halfway(sum1, p1, c1);
  }
  return _mm_movelh_ps(_mm_cvtpd_ps(sum0), _mm_cvtpd_ps(sum1));
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
