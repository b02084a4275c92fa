// line_neon.h - a line of codes in four registers, and sums of products in four more. Included by
// code_lines.h only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_NEON

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

struct Line {
  uint8x16_t r[4];  // 64 bytes
};
struct Sums {
  int32x4_t r[4];  // 16 x int32
};
inline constexpr int kLargestFactor = 127;  // of a line that dot() multiplies: signed bytes

OCTAVO_INLINE Line line_load(const uint8_t* p) {
  return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
}
OCTAVO_INLINE void line_store(uint8_t* p, Line v) {
  for (int i = 0; i < 4; ++i) vst1q_u8(p + 16 * i, v.r[i]);
}
OCTAVO_INLINE Line line_or(Line a, Line b) {
  for (int i = 0; i < 4; ++i) a.r[i] = vorrq_u8(a.r[i], b.r[i]);
  return a;
}
// Bits [kShift, ...) of each byte, masked.
template <int kShift, int kMask>
OCTAVO_INLINE Line line_field(Line v) {
  for (int i = 0; i < 4; ++i) {
    if constexpr (kShift > 0) v.r[i] = vshrq_n_u8(v.r[i], kShift);
    v.r[i] = vandq_u8(v.r[i], vdupq_n_u8(kMask));
  }
  return v;
}
// Field kField of two bits of each byte, at bits 4 and 5.
template <int kField>
OCTAVO_INLINE Line line_high_field(Line v) {
  for (int i = 0; i < 4; ++i) {
    if constexpr (kField < 2) v.r[i] = vshlq_n_u8(v.r[i], 4 - 2 * kField);
    if constexpr (kField == 3) v.r[i] = vshrq_n_u8(v.r[i], 2);
    v.r[i] = vandq_u8(v.r[i], vdupq_n_u8(0x30));
  }
  return v;
}
// Adds kValue to the bytes whose bit is set in the 64 bits at `bits`.
template <int kValue>
OCTAVO_INLINE Line line_add_bits(Line v, const uint8_t* bits) {
  const uint8x16_t own_bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  for (int i = 0; i < 4; ++i) {
    const uint8x16_t spread = vcombine_u8(vdup_n_u8(bits[2 * i]), vdup_n_u8(bits[2 * i + 1]));
    const uint8x16_t is_set = vtstq_u8(spread, own_bit);
    v.r[i] = vaddq_u8(v.r[i], vandq_u8(is_set, vdupq_n_u8(kValue)));
  }
  return v;
}
OCTAVO_INLINE Line line_look_up(Line v, const uint8_t* table) {
  const uint8x16_t sixteen = vld1q_u8(table);
  for (int i = 0; i < 4; ++i) v.r[i] = vqtbl1q_u8(sixteen, v.r[i]);
  return v;
}

OCTAVO_INLINE Sums sums_of(int32_t each) {
  const int32x4_t four = vdupq_n_s32(each);
  return {{four, four, four, four}};
}
// sums[n] += the four products of row n's codes and the four signed bytes at `digits`.
OCTAVO_INLINE Sums dot(Sums sums, Line codes, const int8_t* digits) {
  int32_t word = 0;
  std::memcpy(&word, digits, sizeof(word));
  const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(word));
  for (int i = 0; i < 4; ++i) {
    const int8x16_t bytes = vreinterpretq_s8_u8(codes.r[i]);
#ifdef __ARM_FEATURE_DOTPROD
    sums.r[i] = vdotq_s32(sums.r[i], bytes, four);
#else
    // Two products of up to 127 * 128 fit in 16 bits.
    const int16x8_t low = vmull_s8(vget_low_s8(bytes), vget_low_s8(four));
    const int16x8_t high = vmull_s8(vget_high_s8(bytes), vget_high_s8(four));
    sums.r[i] = vaddq_s32(sums.r[i], vpaddlq_s16(vpaddq_s16(low, high)));
#endif
  }
  return sums;
}
// 16 * high + low
OCTAVO_INLINE Sums joined(Sums high, Sums low) {
  for (int i = 0; i < 4; ++i) low.r[i] = vaddq_s32(vshlq_n_s32(high.r[i], 4), low.r[i]);
  return low;
}
OCTAVO_INLINE Vec to_floats(Sums sums) {
  Vec out;
  for (int i = 0; i < 4; ++i) out.r[i] = vcvtq_f32_s32(sums.r[i]);
  return out;
}
OCTAVO_INLINE void fetch_line(const uint8_t* p) { __builtin_prefetch(p); }

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
