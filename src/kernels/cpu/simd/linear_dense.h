// linear_dense.h - products of bfloat16 rows and weights with vectors, in the order of the tile unit
// (docs/arithmetic.md). Per output and tile of 32 inputs: one chain of fused multiply-adds over the
// even inputs and one over the odd ones, both from zero, and their sum is added to the output. Every
// row and output has chains of its own, so other rows and outputs do not matter. No MLX.
#pragma once

#include "kernels/cpu/simd/dense_tile.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Rows multiplied with a strip before the next strip. Their sums stay in the first-level cache.
inline constexpr int64_t kDenseRows = 64;
static_assert(kDenseRows % kRowBlock == 0);

// Rows and registers of outputs of one pass: their chains fit in registers and hide the latency.
#if defined(OCTAVO_SIMD_AVX512)
inline constexpr int kPassRows = 16, kPassRegs = 1;
#elif defined(OCTAVO_SIMD_AVX2)
inline constexpr int kPassRows = 4, kPassRegs = 2;
#elif defined(OCTAVO_SIMD_NEON)
inline constexpr int kPassRows = 4, kPassRegs = 4;
#else
inline constexpr int kPassRows = 2, kPassRegs = 1;
#endif

static int64_t dense_prepared_bytes(int64_t rows, int64_t cols) {
  return (rows + kRowBlock - 1) / kRowBlock * kRowBlock * prepared_cols(cols) * 4;
}

// Rows as [block of 16 rows][tile][16 rows][32 inputs], so that a product reads them forward.
static void prepare_dense_rows(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  const int64_t cols = prepared_cols(job.cols);
  auto* prepared = reinterpret_cast<float*>(job.prepared);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowNorm norm = row_norm(job, row);
    float* out = prepared + row / kRowBlock * kRowBlock * cols + row % kRowBlock * kTileCols;
    for (int64_t k = 0; k < cols; k += kLanes) {
      const Vec v = normed16(job, row, norm, k);
      store(out + k / kTileCols * kTileCols * kRowBlock + k % kTileCols,
            job.norm == Norm::kNone ? v : round_to(job.dtype, v));
    }
  }
}

// One input of every row: w has its weights, x[32 r] is its number in row r.
template <int Rows>
OCTAVO_INLINE void step_chains(const float* w, const float* x, Reg (*chains)[kPassRegs]) {
  Reg weights[kPassRegs];
#pragma GCC unroll 4
  for (int i = 0; i < kPassRegs; ++i) weights[i] = reg_load(w + i * kRegLanes);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    const Reg number = reg_set1(x[r * kTileCols]);
#pragma GCC unroll 4
    for (int i = 0; i < kPassRegs; ++i) chains[r][i] = reg_fma(weights[i], number, chains[r][i]);
  }
}

// sums[r] += tile times row r; x: [rows][32].
template <int Rows>
OCTAVO_INLINE void add_tile(const float* tile, const float* x, Vec* sums) {
  // Chains of one loop over the inputs: the even or the odd ones, or both if there are so few that
  // each would wait for itself.
  constexpr int kTogether = Rows * kPassRegs <= 4 ? 2 : 1;
  for (int first = 0; first < kRegs; first += kPassRegs) {
    Reg chains[2][Rows][kPassRegs];  // of the even and of the odd inputs
#pragma GCC unroll 2
    for (int begin = 0; begin < 2; begin += kTogether) {
#pragma GCC unroll 2
      for (int odd = begin; odd < begin + kTogether; ++odd)
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
          for (int i = 0; i < kPassRegs; ++i) chains[odd][r][i] = reg_set1(0);
      for (int k = 0; k < kTileCols; k += 2) {
#pragma GCC unroll 2
        for (int odd = begin; odd < begin + kTogether; ++odd)
          step_chains<Rows>(tile + (k + odd) * kStripRows + first * kRegLanes, x + k + odd,
                            chains[odd]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < kPassRegs; ++i) {
        Reg& sum = sums[r].r[first + i];
        sum = reg_add(sum, reg_add(chains[0][r][i], chains[1][r][i]));
      }
    }
  }
}

// The rows of a block, as many per pass as possible.
template <int Rows = kPassRows>
OCTAVO_INLINE void add_tile_rows(const float* tile, const float* x, int64_t rows, Vec* sums) {
  int64_t done = 0;
  for (; done + Rows <= rows; done += Rows) add_tile<Rows>(tile, x + done * kTileCols, sums + done);
  if constexpr (Rows > 1) {
    if (done < rows) add_tile_rows<Rows / 2>(tile, x + done * kTileCols, rows - done, sums + done);
  }
}

OCTAVO_INLINE void fetch_ahead(const uint16_t* tile) {
  constexpr int64_t kAhead = 2 * kTileNumbers, kLine = 32;
#pragma GCC unroll 16
  for (int64_t at = 0; at < kTileNumbers; at += kLine) __builtin_prefetch(tile + kAhead + at);
}

// Rows [first, first + rows) of a strip; `first` begins a block.
static __attribute__((noinline)) void dense_strip(const LinearJob& job, const PackedView& weight,
                                                  int64_t strip, int64_t first, int64_t rows,
                                                  Vec* sums) {
  const int64_t tiles = weight.layout.padded_cols / kTileCols;
  const auto* w = reinterpret_cast<const uint16_t*>(weight.strip(strip));
  const float* x = reinterpret_cast<const float*>(job.prepared) + first * tiles * kTileCols;
  for (int64_t r = 0; r < rows; ++r) sums[r] = zero();
  alignas(64) float tile[kTileNumbers];
  for (int64_t t = 0; t < tiles; ++t) {
    if (first == 0) fetch_ahead(w + t * kTileNumbers);  // read from memory
    widen_tile(w + t * kTileNumbers, tile);
    for (int64_t r = 0; r < rows; r += kRowBlock)
      add_tile_rows(tile, x + (r * tiles + t * kRowBlock) * kTileCols,
                    rows - r < kRowBlock ? rows - r : kRowBlock, sums + r);
  }
}

static void linear_dense(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const bool is_gated = job.up.data != nullptr;
  Vec sums[kDenseRows];
  Vec ups[kDenseRows];
  for (int64_t m = 0; m < job.rows; m += kDenseRows) {
    const int64_t rows = job.rows - m < kDenseRows ? job.rows - m : kDenseRows;
    for (int64_t strip = strip_begin; strip < strip_end; ++strip) {
      dense_strip(job, job.weight, strip, m, rows, sums);
      if (is_gated) dense_strip(job, job.up, strip, m, rows, ups);
      finish_rows(job, strip, m, rows, {sums, is_gated ? ups : nullptr});
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
