// dense_tile.h - a packed tile of bfloat16 weights, [16 outputs][32 inputs], as float32
// [32 inputs][16 outputs]: lanes are outputs, so the inputs of an output can be added in order. No MLX.
#pragma once

#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int kTileCols = 32;
inline constexpr int64_t kTileNumbers = kStripRows * kTileCols;

#if defined(OCTAVO_SIMD_AVX512)

OCTAVO_INLINE void widen_tile(const uint16_t* tile, float* out) {
  __m512 pairs[16];
  for (int n = 0; n < 16; ++n) pairs[n] = _mm512_loadu_ps(tile + n * kTileCols);
  transpose16(pairs);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int i = 0; i < 16; ++i) {
    const __m512i pair = _mm512_castps_si512(pairs[i]);
    _mm512_store_si512(out + 2 * i * kStripRows, _mm512_slli_epi32(pair, 16));
    _mm512_store_si512(out + (2 * i + 1) * kStripRows, _mm512_and_si512(pair, upper));
  }
}

#elif defined(OCTAVO_SIMD_AVX2)

// Four pairs of inputs of eight outputs.
OCTAVO_INLINE void widen_pairs(const uint16_t* from, float* out) {
  __m256 lines[4];
  for (int n = 0; n < 4; ++n) {
    const auto* low = reinterpret_cast<const float*>(from + n * kTileCols);
    const auto* high = reinterpret_cast<const float*>(from + (n + 4) * kTileCols);
    lines[n] =
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
  }
  const auto pd = [](__m256 v) { return _mm256_castps_pd(v); };
  const __m256 low01 = _mm256_unpacklo_ps(lines[0], lines[1]);
  const __m256 high01 = _mm256_unpackhi_ps(lines[0], lines[1]);
  const __m256 low23 = _mm256_unpacklo_ps(lines[2], lines[3]);
  const __m256 high23 = _mm256_unpackhi_ps(lines[2], lines[3]);
  const __m256d pairs[4] = {
      _mm256_unpacklo_pd(pd(low01), pd(low23)), _mm256_unpackhi_pd(pd(low01), pd(low23)),
      _mm256_unpacklo_pd(pd(high01), pd(high23)), _mm256_unpackhi_pd(pd(high01), pd(high23))};
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  for (int i = 0; i < 4; ++i) {
    const __m256i pair = _mm256_castpd_si256(pairs[i]);
    float* even = out + 2 * i * kStripRows;
    _mm256_store_ps(even, _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)));
    _mm256_store_ps(even + kStripRows, _mm256_castsi256_ps(_mm256_and_si256(pair, upper)));
  }
}

OCTAVO_INLINE void widen_tile(const uint16_t* tile, float* out) {
  for (int n = 0; n < kStripRows; n += 8)
    for (int k = 0; k < kTileCols; k += 8)
      widen_pairs(tile + n * kTileCols + k, out + k * kStripRows + n);
}

#elif defined(OCTAVO_SIMD_NEON)

// Four pairs of inputs of four outputs.
OCTAVO_INLINE void widen_pairs(const uint16_t* from, float* out) {
  uint32x4_t lines[4];
  for (int n = 0; n < 4; ++n) lines[n] = vreinterpretq_u32_u16(vld1q_u16(from + n * kTileCols));
  const auto wide = [](uint32x4_t v) { return vreinterpretq_u64_u32(v); };
  const uint64x2_t even01 = wide(vtrn1q_u32(lines[0], lines[1]));
  const uint64x2_t odd01 = wide(vtrn2q_u32(lines[0], lines[1]));
  const uint64x2_t even23 = wide(vtrn1q_u32(lines[2], lines[3]));
  const uint64x2_t odd23 = wide(vtrn2q_u32(lines[2], lines[3]));
  const uint64x2_t pairs[4] = {vtrn1q_u64(even01, even23), vtrn1q_u64(odd01, odd23),
                               vtrn2q_u64(even01, even23), vtrn2q_u64(odd01, odd23)};
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t pair = vreinterpretq_u32_u64(pairs[i]);
    float* even = out + 2 * i * kStripRows;
    vst1q_f32(even, vreinterpretq_f32_u32(vshlq_n_u32(pair, 16)));
    vst1q_f32(even + kStripRows, vreinterpretq_f32_u32(vandq_u32(pair, vdupq_n_u32(0xffff0000u))));
  }
}

OCTAVO_INLINE void widen_tile(const uint16_t* tile, float* out) {
  for (int n = 0; n < kStripRows; n += 4)
    for (int k = 0; k < kTileCols; k += 8)
      widen_pairs(tile + n * kTileCols + k, out + k * kStripRows + n);
}

#else

OCTAVO_INLINE void widen_tile(const uint16_t* tile, float* out) {
  for (int n = 0; n < kStripRows; ++n)
    for (int k = 0; k < kTileCols; ++k)
      out[k * kStripRows + n] = bf16_to_float(tile[n * kTileCols + k]);
}

#endif

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
