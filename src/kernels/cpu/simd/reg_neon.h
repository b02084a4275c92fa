// reg_neon.h - 4 floats in one register. Included by reg.h only. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_NEON

#include <arm_neon.h>

#include <cstdint>

#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

using Reg = float32x4_t;
inline constexpr int kRegLanes = 4;

OCTAVO_INLINE Reg reg_set1(float v) { return vdupq_n_f32(v); }
OCTAVO_INLINE Reg reg_load(const float* p) { return vld1q_f32(p); }
OCTAVO_INLINE void reg_store(float* p, Reg v) { vst1q_f32(p, v); }
OCTAVO_INLINE Reg reg_add(Reg a, Reg b) { return vaddq_f32(a, b); }
OCTAVO_INLINE Reg reg_sub(Reg a, Reg b) { return vsubq_f32(a, b); }
OCTAVO_INLINE Reg reg_mul(Reg a, Reg b) { return vmulq_f32(a, b); }
OCTAVO_INLINE Reg reg_div(Reg a, Reg b) { return vdivq_f32(a, b); }
// As on x86: b if either is NaN.
OCTAVO_INLINE Reg reg_max(Reg a, Reg b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
OCTAVO_INLINE Reg reg_min(Reg a, Reg b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
OCTAVO_INLINE Reg reg_fma(Reg a, Reg b, Reg c) { return vfmaq_f32(c, a, b); }
OCTAVO_INLINE Reg reg_round(Reg a) { return vrndnq_f32(a); }
// 2^n for whole n in [-126, 127].
OCTAVO_INLINE Reg reg_pow2(Reg n) {
  const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
  return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
}
OCTAVO_INLINE Reg reg_if_less(Reg a, Reg b, Reg yes, Reg no) {
  return vbslq_f32(vcltq_f32(a, b), yes, no);
}
OCTAVO_INLINE uint32_t reg_less_bits(Reg a, Reg b) {
  const uint32x4_t weights = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vcltq_f32(a, b), weights));
}
OCTAVO_INLINE Reg reg_load_bf16(const uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
// Denormals become zeros with their sign.
OCTAVO_INLINE void reg_store_bf16(uint16_t* p, Reg v) {
  const uint32x4_t all = vreinterpretq_u32_f32(v);
  const uint32x4_t normal = vtstq_u32(all, vdupq_n_u32(0x7f800000));
  const uint32x4_t bits = vandq_u32(all, vorrq_u32(normal, vdupq_n_u32(0x80000000)));
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(vaddq_u32(bits, odd), vdupq_n_u32(0x7fff)), 16);
  const uint32x4_t quiet = vorrq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(0x40));
  vst1_u16(p, vmovn_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet)));
}
OCTAVO_INLINE Reg reg_load_f16(const uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
OCTAVO_INLINE void reg_store_f16(uint16_t* p, Reg v) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}
OCTAVO_INLINE Reg reg_load_u8(const uint8_t* p) {
  uint32_t four = 0;
  std::memcpy(&four, p, sizeof(four));
  const uint16x8_t wide = vmovl_u8(vcreate_u8(four));
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide)));
}
OCTAVO_INLINE Reg reg_load_i8(const int8_t* p) {
  uint32_t four = 0;
  std::memcpy(&four, p, sizeof(four));
  const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(vcreate_u8(four)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}
// Lanes 2, then 1 apart.
OCTAVO_INLINE float reg_sum(Reg v) {
  const float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
OCTAVO_INLINE float reg_max_lane(Reg v) { return vmaxvq_f32(v); }

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
