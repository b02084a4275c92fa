// transpose.h - a 16 x 16 block of 32-bit lanes. AVX-512 only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AVX512

#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// line[i] lane j becomes line[j] lane i.
OCTAVO_INLINE void transpose16(__m512* line) {
  __m512 t[16];
  const auto low_pairs = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high_pairs = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(line[i], line[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(line[i], line[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    line[i] = low_pairs(t[i], t[i + 2]);
    line[i + 1] = high_pairs(t[i], t[i + 2]);
    line[i + 2] = low_pairs(t[i + 1], t[i + 3]);
    line[i + 3] = high_pairs(t[i + 1], t[i + 3]);
  }
  // Exchange lane quarters: first between neighbours, then across.
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(line[i], line[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(line[i], line[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(line[i + 8], line[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(line[i + 8], line[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    line[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    line[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    line[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    line[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
