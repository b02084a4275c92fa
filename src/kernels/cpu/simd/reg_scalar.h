// reg_scalar.h - 4 floats in plain C++ (GNU vectors), the baseline of every machine. Included by
// reg.h only. No MLX.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "kernels/cpu/simd/fma_sse2.h"
#include "kernels/cpu/simd/simd_macros.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

typedef float Reg __attribute__((vector_size(16)));
typedef int32_t RegBits __attribute__((vector_size(16)));
inline constexpr int kRegLanes = 4;

OCTAVO_INLINE Reg reg_set1(float v) { return Reg{v, v, v, v}; }
OCTAVO_INLINE Reg reg_load(const float* p) {
  Reg v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
OCTAVO_INLINE void reg_store(float* p, Reg v) { std::memcpy(p, &v, sizeof(v)); }
OCTAVO_INLINE Reg reg_add(Reg a, Reg b) { return a + b; }
OCTAVO_INLINE Reg reg_sub(Reg a, Reg b) { return a - b; }
OCTAVO_INLINE Reg reg_mul(Reg a, Reg b) { return a * b; }
OCTAVO_INLINE Reg reg_div(Reg a, Reg b) { return a / b; }
OCTAVO_INLINE Reg reg_max(Reg a, Reg b) { return a > b ? a : b; }
OCTAVO_INLINE Reg reg_min(Reg a, Reg b) { return a < b ? a : b; }
// Rounded once: by an instruction, or on x86 without one by fma_sse2.h.
#if defined(__SSE2__) && !defined(__FMA__)
OCTAVO_INLINE Reg reg_fma(Reg a, Reg b, Reg c) { return fma_sse2(a, b, c); }
#else
OCTAVO_INLINE Reg reg_fma(Reg a, Reg b, Reg c) {
  for (int i = 0; i < kRegLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
#endif
// To nearest even, for |a| < 2^22.
OCTAVO_INLINE Reg reg_round(Reg a) {
  const Reg magic = reg_set1(12582912.0f);  // 1.5 * 2^23
  return (a + magic) - magic;
}
// 2^n for whole n in [-126, 127].
OCTAVO_INLINE Reg reg_pow2(Reg n) {
  const RegBits biased = __builtin_convertvector(n, RegBits) + 127;
  const RegBits bits = biased << 23;
  Reg out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}
OCTAVO_INLINE Reg reg_if_less(Reg a, Reg b, Reg yes, Reg no) { return a < b ? yes : no; }
OCTAVO_INLINE uint32_t reg_less_bits(Reg a, Reg b) {
  const RegBits less = (a < b) & RegBits{1, 2, 4, 8};
  return static_cast<uint32_t>(less[0] | less[1] | less[2] | less[3]);
}
template <typename T, typename Convert>
OCTAVO_INLINE Reg reg_convert(const T* p, Convert convert) {
  return Reg{convert(p[0]), convert(p[1]), convert(p[2]), convert(p[3])};
}
OCTAVO_INLINE Reg reg_load_bf16(const uint16_t* p) { return reg_convert(p, bf16_to_float); }
// Denormals become zeros with their sign.
OCTAVO_INLINE void reg_store_bf16(uint16_t* p, Reg v) {
  RegBits bits;
  std::memcpy(&bits, &v, sizeof(bits));
  bits &= (bits & 0x7f800000) != 0 ? RegBits{-1, -1, -1, -1} : RegBits{} + INT32_MIN;
  std::memcpy(&v, &bits, sizeof(bits));
  for (int i = 0; i < kRegLanes; ++i) p[i] = float_to_bf16(v[i]);
}
// Not inlined: their branches, sixteen times per load and store, would double the compile time.
static __attribute__((noinline)) Reg reg_load_f16(const uint16_t* p) {
  return reg_convert(p, half_to_float);
}
static __attribute__((noinline)) void reg_store_f16(uint16_t* p, Reg v) {
  for (int i = 0; i < kRegLanes; ++i) p[i] = float_to_half(v[i]);
}
OCTAVO_INLINE Reg reg_load_u8(const uint8_t* p) {
  return reg_convert(p, [](uint8_t v) { return static_cast<float>(v); });
}
OCTAVO_INLINE Reg reg_load_i8(const int8_t* p) {
  return reg_convert(p, [](int8_t v) { return static_cast<float>(v); });
}
// Lanes 2, then 1 apart.
OCTAVO_INLINE float reg_sum(Reg v) { return (v[0] + v[2]) + (v[1] + v[3]); }
OCTAVO_INLINE float reg_max_lane(Reg v) {
  const float a = v[0] > v[2] ? v[0] : v[2];
  const float b = v[1] > v[3] ? v[1] : v[3];
  return a > b ? a : b;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
