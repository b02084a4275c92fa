// line_avx2.h - a line of codes in two registers, and sums of products in two more. Included by
// code_lines.h only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AVX2

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

struct Line {
  __m256i r[2];  // 64 unsigned bytes
};
struct Sums {
  __m256i r[2];  // 16 x int32
};
inline constexpr int kLargestFactor = 127;  // of a line that dot() multiplies: 2 * 127 * 128 < 2^15

OCTAVO_INLINE Line line_load(const uint8_t* p) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)}};
}
OCTAVO_INLINE void line_store(uint8_t* p, Line v) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, v.r[0]);
  _mm256_storeu_si256(to + 1, v.r[1]);
}
OCTAVO_INLINE Line line_or(Line a, Line b) {
  return {{_mm256_or_si256(a.r[0], b.r[0]), _mm256_or_si256(a.r[1], b.r[1])}};
}
// Bits [kShift, ...) of each byte, masked.
template <int kShift, int kMask>
OCTAVO_INLINE Line line_field(Line v) {
  for (__m256i& r : v.r) {
    if constexpr (kShift > 0) r = _mm256_srli_epi16(r, kShift);
    r = _mm256_and_si256(r, _mm256_set1_epi8(kMask));
  }
  return v;
}
// Field kField of two bits of each byte, at bits 4 and 5.
template <int kField>
OCTAVO_INLINE Line line_high_field(Line v) {
  for (__m256i& r : v.r) {
    if constexpr (kField < 2) r = _mm256_slli_epi16(r, 4 - 2 * kField);
    if constexpr (kField == 3) r = _mm256_srli_epi16(r, 2);
    r = _mm256_and_si256(r, _mm256_set1_epi8(0x30));
  }
  return v;
}
// Adds kValue to the bytes whose bit is set in the 64 bits at `bits`.
template <int kValue>
OCTAVO_INLINE Line line_add_bits(Line v, const uint8_t* bits) {
  const __m256i bytes =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i own_bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  for (int half = 0; half < 2; ++half) {
    int32_t word = 0;
    std::memcpy(&word, bits + 4 * half, sizeof(word));
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(word), bytes);
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, own_bit), own_bit);
    v.r[half] = _mm256_add_epi8(v.r[half], _mm256_and_si256(is_set, _mm256_set1_epi8(kValue)));
  }
  return v;
}
OCTAVO_INLINE Line line_look_up(Line v, const uint8_t* table) {
  const __m256i both =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
  for (__m256i& r : v.r) r = _mm256_shuffle_epi8(both, r);
  return v;
}

OCTAVO_INLINE Sums sums_of(int32_t each) {
  return {{_mm256_set1_epi32(each), _mm256_set1_epi32(each)}};
}
// sums[n] += the four products of row n's codes and the four signed bytes at `digits`.
OCTAVO_INLINE Sums dot(Sums sums, Line codes, const int8_t* digits) {
  int32_t word = 0;
  std::memcpy(&word, digits, sizeof(word));
  const __m256i four = _mm256_set1_epi32(word);
  for (int i = 0; i < 2; ++i) {
    const __m256i pairs = _mm256_maddubs_epi16(codes.r[i], four);
    sums.r[i] = _mm256_add_epi32(sums.r[i], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  return sums;
}
// 16 * high + low
OCTAVO_INLINE Sums joined(Sums high, Sums low) {
  for (int i = 0; i < 2; ++i)
    low.r[i] = _mm256_add_epi32(_mm256_slli_epi32(high.r[i], 4), low.r[i]);
  return low;
}
OCTAVO_INLINE Vec to_floats(Sums sums) {
  return {{_mm256_cvtepi32_ps(sums.r[0]), _mm256_cvtepi32_ps(sums.r[1])}};
}
OCTAVO_INLINE void fetch_line(const uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
