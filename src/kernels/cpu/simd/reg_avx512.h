// reg_avx512.h - 16 floats in one register. Included by reg.h only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AVX512

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

using Reg = __m512;
inline constexpr int kRegLanes = 16;

OCTAVO_INLINE Reg reg_set1(float v) { return _mm512_set1_ps(v); }
OCTAVO_INLINE Reg reg_load(const float* p) { return _mm512_loadu_ps(p); }
OCTAVO_INLINE void reg_store(float* p, Reg v) { _mm512_storeu_ps(p, v); }
OCTAVO_INLINE Reg reg_add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
OCTAVO_INLINE Reg reg_sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
OCTAVO_INLINE Reg reg_mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
OCTAVO_INLINE Reg reg_div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
OCTAVO_INLINE Reg reg_max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
OCTAVO_INLINE Reg reg_min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
OCTAVO_INLINE Reg reg_fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
OCTAVO_INLINE Reg reg_round(Reg a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n for whole n in [-126, 127].
OCTAVO_INLINE Reg reg_pow2(Reg n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
}
OCTAVO_INLINE Reg reg_if_less(Reg a, Reg b, Reg yes, Reg no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
OCTAVO_INLINE uint32_t reg_less_bits(Reg a, Reg b) {
  return _cvtmask16_u32(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ));
}
OCTAVO_INLINE Reg reg_load_bf16(const uint16_t* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
// Denormals become zeros with their sign.
#ifdef OCTAVO_SIMD_BF16
OCTAVO_INLINE void reg_store_bf16(uint16_t* p, Reg v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
}
#else
OCTAVO_INLINE void reg_store_bf16(uint16_t* p, Reg v) {
  const __mmask16 denormal =
      _mm512_testn_epi32_mask(_mm512_castps_si512(v), _mm512_set1_epi32(0x7f800000));
  const __m512i bits =
      _mm512_mask_and_epi32(_mm512_castps_si512(v), denormal, _mm512_castps_si512(v),
                            _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff)), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet)));
}
#endif
OCTAVO_INLINE Reg reg_load_f16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
OCTAVO_INLINE void reg_store_f16(uint16_t* p, Reg v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
OCTAVO_INLINE Reg reg_load_u8(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}
OCTAVO_INLINE Reg reg_load_i8(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
// Lanes i and i + 8, then 4, 2, 1 apart.
OCTAVO_INLINE __m256 fold_half(Reg v) {
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}
OCTAVO_INLINE float reg_sum(Reg v) {
  const __m256 eight = fold_half(v);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
OCTAVO_INLINE float reg_max_lane(Reg v) { return _mm512_reduce_max_ps(v); }

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
