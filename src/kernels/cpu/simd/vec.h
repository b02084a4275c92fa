// vec.h - sixteen float lanes, regardless of the register width: kernels are written once and give
// the same bits on every set. No MLX.
#pragma once

#include "base/dtype.h"
#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int kLanes = 16;
inline constexpr int kRegs = kLanes / kRegLanes;

struct Vec {
  Reg r[kRegs];
};

#define OCTAVO_EACH_REG _Pragma("GCC unroll 4") for (int i = 0; i < kRegs; ++i)

OCTAVO_INLINE Vec set1(float v) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_set1(v);
  return out;
}
OCTAVO_INLINE Vec zero() { return set1(0); }

#define OCTAVO_VEC_BINARY(name)                            \
  OCTAVO_INLINE Vec name(Vec a, Vec b) {                   \
    Vec out;                                               \
    OCTAVO_EACH_REG out.r[i] = reg_##name(a.r[i], b.r[i]); \
    return out;                                            \
  }
OCTAVO_VEC_BINARY(add)
OCTAVO_VEC_BINARY(sub)
OCTAVO_VEC_BINARY(mul)
OCTAVO_VEC_BINARY(div)
OCTAVO_VEC_BINARY(max)  // b if either is NaN
OCTAVO_VEC_BINARY(min)
#undef OCTAVO_VEC_BINARY

// a * b + c, rounded once
OCTAVO_INLINE Vec fma(Vec a, Vec b, Vec c) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_fma(a.r[i], b.r[i], c.r[i]);
  return out;
}
OCTAVO_INLINE Vec round_even(Vec a) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_round(a.r[i]);
  return out;
}
OCTAVO_INLINE Vec pow2(Vec n) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_pow2(n.r[i]);
  return out;
}
OCTAVO_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_if_less(a.r[i], b.r[i], yes.r[i], no.r[i]);
  return out;
}
// Bit i: a < b in lane i; false for NaN.
OCTAVO_INLINE uint32_t less_bits(Vec a, Vec b) {
  uint32_t bits = 0;
  OCTAVO_EACH_REG bits |= reg_less_bits(a.r[i], b.r[i]) << (i * kRegLanes);
  return bits;
}

// Lanes i and i + 8, then 4, 2 and 1 apart.
OCTAVO_INLINE float sum(Vec v) {
  if constexpr (kRegs == 1) return reg_sum(v.r[0]);
  if constexpr (kRegs == 2) return reg_sum(reg_add(v.r[0], v.r[1]));
  if constexpr (kRegs == 4)
    return reg_sum(reg_add(reg_add(v.r[0], v.r[2]), reg_add(v.r[1], v.r[3])));
}
OCTAVO_INLINE float max_lane(Vec v) {
  Reg all = v.r[0];
  for (int i = 1; i < kRegs; ++i) all = reg_max(all, v.r[i]);
  return reg_max_lane(all);
}

OCTAVO_INLINE Vec load(const float* p) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_load(p + i * kRegLanes);
  return out;
}
OCTAVO_INLINE void store(float* p, Vec v) { OCTAVO_EACH_REG reg_store(p + i * kRegLanes, v.r[i]); }
OCTAVO_INLINE Vec load_bf16(const uint16_t* p) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_load_bf16(p + i * kRegLanes);
  return out;
}
OCTAVO_INLINE Vec load_f16(const uint16_t* p) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_load_f16(p + i * kRegLanes);
  return out;
}
OCTAVO_INLINE Vec load_u8(const uint8_t* p) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_load_u8(p + i * kRegLanes);
  return out;
}
OCTAVO_INLINE Vec load_i8(const int8_t* p) {
  Vec out;
  OCTAVO_EACH_REG out.r[i] = reg_load_i8(p + i * kRegLanes);
  return out;
}
OCTAVO_INLINE void store_bf16(uint16_t* p, Vec v) {
  OCTAVO_EACH_REG reg_store_bf16(p + i * kRegLanes, v.r[i]);
}
OCTAVO_INLINE void store_f16(uint16_t* p, Vec v) {
  OCTAVO_EACH_REG reg_store_f16(p + i * kRegLanes, v.r[i]);
}
#undef OCTAVO_EACH_REG

// Sixteen numbers starting at element `index` of an array of `dtype`.
OCTAVO_INLINE Vec load_as(const void* base, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kFloat32:
      return load(static_cast<const float*>(base) + index);
    case DType::kFloat16:
      return load_f16(static_cast<const uint16_t*>(base) + index);
    default:
      return load_bf16(static_cast<const uint16_t*>(base) + index);
  }
}
OCTAVO_INLINE void store_as(void* base, DType dtype, int64_t index, Vec v) {
  switch (dtype) {
    case DType::kFloat32:
      return store(static_cast<float*>(base) + index, v);
    case DType::kFloat16:
      return store_f16(static_cast<uint16_t*>(base) + index, v);
    default:
      return store_bf16(static_cast<uint16_t*>(base) + index, v);
  }
}

OCTAVO_INLINE int64_t element_bytes(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }

// The same for the first `count` < 16 of them; other lanes are zero.
OCTAVO_INLINE Vec load_part(const void* base, DType dtype, int64_t index, int64_t count) {
  alignas(64) unsigned char bytes[kLanes * 4] = {};
  const int64_t width = element_bytes(dtype);
  std::memcpy(bytes, static_cast<const unsigned char*>(base) + index * width,
              static_cast<size_t>(count * width));
  return load_as(bytes, dtype, 0);
}
OCTAVO_INLINE void store_part(void* base, DType dtype, int64_t index, int64_t count, Vec v) {
  alignas(64) unsigned char bytes[kLanes * 4];
  store_as(bytes, dtype, 0, v);
  const int64_t width = element_bytes(dtype);
  std::memcpy(static_cast<unsigned char*>(base) + index * width, bytes,
              static_cast<size_t>(count * width));
}
// Rounded to `dtype` and back.
OCTAVO_INLINE Vec round_to(DType dtype, Vec v) {
  if (dtype == DType::kFloat32) return v;
  alignas(64) uint16_t half[kLanes];
  store_as(half, dtype, 0, v);
  return load_as(half, dtype, 0);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
