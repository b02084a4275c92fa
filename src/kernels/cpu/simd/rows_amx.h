// rows_amx.h - prepares rows for a product on the tile unit: norm, and the pairing of its B
// operand. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/norm.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kTileElements = 512;  // bfloat16 numbers of a tile: 1 KiB

static int64_t amx_prepared_bytes(int64_t rows, int64_t cols) {
  const int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  // One extra block, so that a pass over two may read past an odd last one.
  return (blocks + 1) * kRowBlock * prepared_cols(cols) * 2;
}

// Thirty-two inputs of a row starting at k, normed and rounded to bfloat16.
OCTAVO_INLINE __m512i prepared32(const RowsJob& job, int64_t row, RowNorm norm, int64_t k) {
  alignas(64) uint16_t numbers[32];
  store_bf16(numbers, normed16(job, row, norm, k));
  store_bf16(numbers + 16, normed16(job, row, norm, k + 16));
  return _mm512_load_si512(numbers);
}

// The same for bfloat16 rows that have all thirty-two: RMS norm's weights are in registers.
OCTAVO_INLINE __m512i normed32(const uint16_t* x, float factor, const Vec& first,
                               const Vec& second) {
  const Vec scale = set1(factor);
  const Vec low = mul(mul(load_bf16(x), scale), first);
  const Vec high = mul(mul(load_bf16(x + 16), scale), second);
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.r[0], low.r[0]));
}

// Pairs of inputs of up to 16 rows as one tile [16 pairs][16 rows][2].
OCTAVO_INLINE void store_pairs(const __m512i* lines, int64_t rows, uint16_t* tile) {
  if (rows < 6) {
    const __m512i places = _mm512_slli_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 4);
    for (int64_t m = 0; m < rows; ++m)
      _mm512_i32scatter_epi32(reinterpret_cast<int*>(tile) + m, places, lines[m], 4);
    return;
  }
  __m512 columns[16];
  for (int m = 0; m < 16; ++m)
    columns[m] = m < rows ? _mm512_castsi512_ps(lines[m]) : _mm512_setzero_ps();
  transpose16(columns);
  for (int i = 0; i < 16; ++i) _mm512_store_ps(tile + i * 32, columns[i]);
}

// Rows [row_begin, row_end) as tiles [block][inputs / 32][16 pairs][16 rows][2]. Columns past the
// last row are not written: their results are never read.
static void amx_prepare(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  const int64_t tiles = prepared_cols(job.cols) / 32;
  const auto* x = static_cast<const uint16_t*>(job.x);
  auto* prepared = reinterpret_cast<uint16_t*>(job.prepared);
  for (int64_t first = row_begin; first < row_end; first += kRowBlock) {
    const int64_t rows = row_end - first < kRowBlock ? row_end - first : kRowBlock;
    uint16_t* block = prepared + first / kRowBlock * tiles * kTileElements;
    RowNorm norms[kRowBlock];
    for (int64_t m = 0; m < rows; ++m) norms[m] = row_norm(job, first + m);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t k = t * 32;
      const bool whole = k + 32 <= job.cols;
      __m512i lines[kRowBlock];
      if (whole && job.norm == Norm::kNone) {
        for (int64_t m = 0; m < rows; ++m)
          lines[m] = _mm512_loadu_si512(x + job.begin_of(first + m) + k);
      } else if (whole && job.norm == Norm::kRms) {
        const Vec low = load_as(job.norm_weight, job.norm_dtype, k);
        const Vec high = load_as(job.norm_weight, job.norm_dtype, k + 16);
        for (int64_t m = 0; m < rows; ++m)
          lines[m] = normed32(x + job.begin_of(first + m) + k, norms[m].factor, low, high);
      } else {
        for (int64_t m = 0; m < rows; ++m) lines[m] = prepared32(job, first + m, norms[m], k);
      }
      store_pairs(lines, rows, block + t * kTileElements);
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
