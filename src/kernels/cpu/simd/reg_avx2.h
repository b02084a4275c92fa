// reg_avx2.h - 8 floats in one register. Included by reg.h only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AVX2

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

using Reg = __m256;
inline constexpr int kRegLanes = 8;

OCTAVO_INLINE Reg reg_set1(float v) { return _mm256_set1_ps(v); }
OCTAVO_INLINE Reg reg_load(const float* p) { return _mm256_loadu_ps(p); }
OCTAVO_INLINE void reg_store(float* p, Reg v) { _mm256_storeu_ps(p, v); }
OCTAVO_INLINE Reg reg_add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
OCTAVO_INLINE Reg reg_sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
OCTAVO_INLINE Reg reg_mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
OCTAVO_INLINE Reg reg_div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
OCTAVO_INLINE Reg reg_max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
OCTAVO_INLINE Reg reg_min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
OCTAVO_INLINE Reg reg_fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
OCTAVO_INLINE Reg reg_round(Reg a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n for whole n in [-126, 127].
OCTAVO_INLINE Reg reg_pow2(Reg n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
OCTAVO_INLINE Reg reg_if_less(Reg a, Reg b, Reg yes, Reg no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
OCTAVO_INLINE uint32_t reg_less_bits(Reg a, Reg b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)));
}
OCTAVO_INLINE Reg reg_load_bf16(const uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
// Denormals become zeros with their sign.
OCTAVO_INLINE __m256i flushed_bits(Reg v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i denormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
  return _mm256_andnot_si256(_mm256_srli_epi32(denormal, 1), bits);
}
OCTAVO_INLINE void reg_store_bf16(uint16_t* p, Reg v) {
  const __m256i bits = flushed_bits(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff)), 16);
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i wide = _mm256_blendv_epi8(rounded, quiet, nan);
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}
OCTAVO_INLINE Reg reg_load_f16(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
OCTAVO_INLINE void reg_store_f16(uint16_t* p, Reg v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
OCTAVO_INLINE Reg reg_load_u8(const uint8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}
OCTAVO_INLINE Reg reg_load_i8(const int8_t* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
// Lanes i and i + 4, then 2, 1 apart.
OCTAVO_INLINE float reg_sum(Reg v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
OCTAVO_INLINE float reg_max_lane(Reg v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
