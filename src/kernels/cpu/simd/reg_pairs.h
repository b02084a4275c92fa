// reg_pairs.h - registers whose 32-bit lanes hold two bfloat16 numbers each. No MLX.
#pragma once

#include "kernels/cpu/simd/reg.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Any 32-bit lanes, as bits.
OCTAVO_INLINE Reg reg_load_bits(const void* p) {
  Reg v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

// The first and the second number of each lane as float32.
#if defined(OCTAVO_SIMD_AVX512)
OCTAVO_INLINE Reg reg_first_bf16(Reg pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
}
OCTAVO_INLINE Reg reg_second_bf16(Reg pairs) {
  return _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_castps_si512(pairs), _mm512_set1_epi32(-0x10000)));
}
#elif defined(OCTAVO_SIMD_AVX2)
OCTAVO_INLINE Reg reg_first_bf16(Reg pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
}
OCTAVO_INLINE Reg reg_second_bf16(Reg pairs) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(_mm256_castps_si256(pairs), _mm256_set1_epi32(-0x10000)));
}
#else
typedef uint32_t PairBits __attribute__((vector_size(16)));
OCTAVO_INLINE Reg reg_first_bf16(Reg pairs) {
  PairBits bits;
  std::memcpy(&bits, &pairs, sizeof(bits));
  bits <<= 16;
  return reg_load_bits(&bits);
}
OCTAVO_INLINE Reg reg_second_bf16(Reg pairs) {
  PairBits bits;
  std::memcpy(&bits, &pairs, sizeof(bits));
  bits &= 0xffff0000u;
  return reg_load_bits(&bits);
}
#endif

// r[i] lane j becomes r[j] lane i.
#if defined(OCTAVO_SIMD_AVX512)
OCTAVO_INLINE void reg_transpose(Reg* r) { transpose16(r); }
#elif defined(OCTAVO_SIMD_AVX2)
OCTAVO_INLINE void reg_transpose(Reg* r) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const __m256 low = r[i];
    r[i] = _mm256_permute2f128_ps(low, r[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(low, r[i + 4], 0x31);
  }
}
#else
OCTAVO_INLINE void reg_transpose(Reg* r) {
  const Reg low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Reg high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Reg low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Reg high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}
#endif

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
