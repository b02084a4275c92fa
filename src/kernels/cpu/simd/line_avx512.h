// line_avx512.h - a line of codes in one register, and sums of products in another. Included by
// code_lines.h only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AVX512

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

using Line = __m512i;  // 64 unsigned bytes
using Sums = __m512i;  // 16 x int32
#ifdef OCTAVO_SIMD_BF16
inline constexpr int kLargestFactor = 255;  // of a line that dot() multiplies
#else
inline constexpr int kLargestFactor = 127;  // 2 * 127 * 128 is below 2^15
#endif

OCTAVO_INLINE Line line_load(const uint8_t* p) { return _mm512_loadu_si512(p); }
OCTAVO_INLINE void line_store(uint8_t* p, Line v) { _mm512_storeu_si512(p, v); }
OCTAVO_INLINE Line line_or(Line a, Line b) { return _mm512_or_si512(a, b); }
// Bits [kShift, ...) of each byte, masked.
template <int kShift, int kMask>
OCTAVO_INLINE Line line_field(Line v) {
  const Line shifted = kShift == 0 ? v : _mm512_srli_epi16(v, kShift);
  return _mm512_and_si512(shifted, _mm512_set1_epi8(kMask));
}
// Field kField of two bits of each byte, at bits 4 and 5.
template <int kField>
OCTAVO_INLINE Line line_high_field(Line v) {
  const Line shifted = kField == 3   ? _mm512_srli_epi16(v, 2)
                       : kField == 2 ? v
                                     : _mm512_slli_epi16(v, 4 - 2 * kField);
  return _mm512_and_si512(shifted, _mm512_set1_epi8(0x30));
}
// Adds kValue to the bytes whose bit is set in the 64 bits at `bits`.
template <int kValue>
OCTAVO_INLINE Line line_add_bits(Line v, const uint8_t* bits) {
  uint64_t mask = 0;
  std::memcpy(&mask, bits, sizeof(mask));
  return _mm512_mask_add_epi8(v, mask, v, _mm512_set1_epi8(kValue));
}
OCTAVO_INLINE Line line_look_up(Line v, const uint8_t* table) {
  const __m128i sixteen = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(sixteen), v);
}

OCTAVO_INLINE Sums sums_of(int32_t each) { return _mm512_set1_epi32(each); }
// sums[n] += the four products of row n's codes and the four signed bytes at `digits`.
OCTAVO_INLINE Sums dot(Sums sums, Line codes, const int8_t* digits) {
  struct Word {
    int8_t bytes[4];
  };
  const auto& four = *reinterpret_cast<const Word*>(digits);
#ifdef OCTAVO_SIMD_BF16
  // Written as assembly because compilers keep the four bytes in registers of their own, which
  // they then store and load again.
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums) : "v"(codes), "m"(four));
  return sums;
#else
  int32_t word = 0;
  std::memcpy(&word, &four, sizeof(word));
  const __m512i pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi32(word));
  return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#endif
}
// 16 * high + low
OCTAVO_INLINE Sums joined(Sums high, Sums low) {
  return _mm512_add_epi32(_mm512_slli_epi32(high, 4), low);
}
OCTAVO_INLINE Vec to_floats(Sums sums) { return {{_mm512_cvtepi32_ps(sums)}}; }
OCTAVO_INLINE void fetch_line(const uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
