// dot_tile.h - the tile unit's bfloat16 product on float32 registers, bit for bit: per output and 32
// inputs, one chain of multiply-adds over the even inputs and one over the odd ones, then
// sum + (even + odd). No MLX.
#pragma once

#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int kChainInputs = 32;
#if defined(OCTAVO_SIMD_AVX512) || defined(OCTAVO_SIMD_NEON)
inline constexpr int kTileRegs = 8;  // outputs computed at a time; each has two chains
#else
inline constexpr int kTileRegs = 4;
#endif

// The numbers are bfloat16 widened to float32; strides are in floats.
struct TileProduct {
  const float* a;  // [columns][32]
  int64_t a_stride;
  const float* b;  // [32][width]
  int64_t b_stride;
  float* sums;  // [columns][width]
  int64_t sums_stride;
};

template <int kColumns, int kWide>
OCTAVO_INLINE void dot_block(const TileProduct& p, int64_t column, int64_t first) {
  const float* a = p.a + column * p.a_stride;
  const float* b = p.b + first;
  Reg even[kColumns][kWide];
  Reg odd[kColumns][kWide];
  for (int c = 0; c < kColumns; ++c)
    for (int w = 0; w < kWide; ++w) even[c][w] = odd[c][w] = reg_set1(0);
  for (int i = 0; i < kChainInputs; i += 2, b += 2 * p.b_stride) {
    Reg b_even[kWide];
    Reg b_odd[kWide];
    for (int w = 0; w < kWide; ++w) {
      b_even[w] = reg_load(b + w * kRegLanes);
      b_odd[w] = reg_load(b + p.b_stride + w * kRegLanes);
    }
    for (int c = 0; c < kColumns; ++c) {
      const Reg a_even = reg_set1(a[c * p.a_stride + i]);
      const Reg a_odd = reg_set1(a[c * p.a_stride + i + 1]);
      for (int w = 0; w < kWide; ++w) {
        even[c][w] = reg_fma(a_even, b_even[w], even[c][w]);
        odd[c][w] = reg_fma(a_odd, b_odd[w], odd[c][w]);
      }
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    float* sums = p.sums + (column + c) * p.sums_stride + first;
    for (int w = 0; w < kWide; ++w, sums += kRegLanes)
      reg_store(sums, reg_add(reg_load(sums), reg_add(even[c][w], odd[c][w])));
  }
}

// Outputs [first, end) of kColumns columns.
template <int kColumns, int kWide>
OCTAVO_INLINE void dot_columns(const TileProduct& p, int64_t column, int64_t first, int64_t end) {
  for (; first + kWide * kRegLanes <= end; first += kWide * kRegLanes)
    dot_block<kColumns, kWide>(p, column, first);
  if constexpr (kWide > 1) dot_columns<kColumns, 1>(p, column, first, end);
}

// sums[c][w] += a[c] . b[.][w] for all columns; `width` is a multiple of 16.
static void add_dot_tile(const TileProduct& p, int64_t columns, int64_t width) {
  constexpr int64_t kStrip = 64;  // outputs whose part of b stays in the first-level cache
  for (int64_t first = 0; first < width; first += kStrip) {
    const int64_t end = first + kStrip < width ? first + kStrip : width;
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) dot_columns<4, kTileRegs / 4>(p, c, first, end);
    if (c + 2 <= columns) {
      dot_columns<2, kTileRegs / 2>(p, c, first, end);
      c += 2;
    }
    if (c < columns) dot_columns<1, kTileRegs / 2>(p, c, first, end);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
