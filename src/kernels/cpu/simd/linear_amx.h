// linear_amx.h - products on the tile unit. The weight is the A operand (16 outputs x 32 inputs, as
// packed), the rows are the B operand (16 input pairs x 16 rows), so a tile of results is
// [16 outputs][16 rows]. A row's results depend on its own column alone, not on its
// neighbours or on the contents of unused columns (checked by octavo_bits_test). No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/finish_amx.h"
#include "kernels/cpu/simd/rows_amx.h"
#include "kernels/cpu/simd/strip_walk.h"
#include "kernels/cpu/simd/tile_ops.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kTileRows = 2 * kRowBlock;  // rows of one pass: two column blocks

template <int kTile>
OCTAVO_INLINE void load_tile(const uint16_t* from) {
  tile_load<kTile>(from, 64);
}

inline constexpr int64_t kAheadElements = 1024;  // 2 KiB of bfloat16 weights

OCTAVO_INLINE void fetch_tile_ahead(const uint16_t* tile) {
#pragma GCC unroll 16
  for (int64_t line = 0; line < kTileElements; line += 32)
    _mm_prefetch(tile + kAheadElements + line, _MM_HINT_T0);
}

// Tile register i += tiles [0, tiles) of strip i times one row block. `between` is called with
// every tile: other work that overlaps with the products.
template <typename Between>
OCTAVO_INLINE void multiply_four(const uint16_t* const (&w)[4], const uint16_t* x, int64_t tiles,
                                 Between& between) {
  for (int64_t t = 0; t < tiles; ++t) {
    between(t);
    const int64_t at = t * kTileElements;
    load_tile<6>(x + at);
    load_tile<4>(w[0] + at);
    tile_dot<0, 4, 6>();
    load_tile<5>(w[1] + at);
    tile_dot<1, 5, 6>();
    fetch_tile_ahead(w[0] + at);
    fetch_tile_ahead(w[1] + at);
    load_tile<4>(w[2] + at);
    tile_dot<2, 4, 6>();
    load_tile<5>(w[3] + at);
    tile_dot<3, 5, 6>();
    fetch_tile_ahead(w[2] + at);
    fetch_tile_ahead(w[3] + at);
  }
}

// Tile register 2 b + i += tiles [0, tiles) of strip i times row block b.
template <bool Prefetch, typename Between>
OCTAVO_INLINE void multiply_two(const uint16_t* w0, const uint16_t* w1, const uint16_t* x0,
                                const uint16_t* x1, int64_t tiles, Between& between) {
  for (int64_t t = 0; t < tiles; ++t) {
    between(t);
    const int64_t at = t * kTileElements;
    load_tile<4>(w0 + at);
    load_tile<6>(x0 + at);
    tile_dot<0, 4, 6>();
    load_tile<5>(w1 + at);
    tile_dot<1, 5, 6>();
    if constexpr (Prefetch) {
      fetch_tile_ahead(w0 + at);
      fetch_tile_ahead(w1 + at);
    }
    load_tile<7>(x1 + at);
    tile_dot<2, 4, 7>();
    tile_dot<3, 5, 7>();
  }
}

OCTAVO_INLINE const uint16_t* dense_strip(const PackedView& weight, int64_t strip) {
  return reinterpret_cast<const uint16_t*>(weight.strip(strip));
}

// One row block and four streams, or two row blocks and two streams: weights are read once,
// directly from memory.
template <int Streams>
static void amx_few_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const int64_t tiles_of_weight = job.weight.layout.padded_cols / 32;
  const auto* x0 = reinterpret_cast<const uint16_t*>(job.prepared);
  const uint16_t* x1 = x0 + x_tiles * kTileElements;
  const StripWalk<Streams> walk{job, strip_begin, strip_end};
  PassWriter writer(job, tiles_of_weight);
  for (int64_t pass = 0; pass < walk.passes(); ++pass) {
    const StripGroup<Streams> group = walk.group(pass);
    writer.begin_pass();
    clear_tiles();
    const uint16_t* w[Streams];
    for (int i = 0; i < Streams; ++i) w[i] = dense_strip(*group.weight[i], group.strip[i]);
    if constexpr (Streams == 4) {
      multiply_four(w, x0, tiles_of_weight, writer);
    } else {
      multiply_two<true>(w[0], w[1], x0, x1, tiles_of_weight, writer);
    }
    writer.end_pass(group, 0, job.rows);
  }
  writer.write_rest();
}

// Many rows: the strips stay in the cache for all rows.
static void amx_many_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const int64_t tiles_of_weight = job.weight.layout.padded_cols / 32;
  const auto* x = reinterpret_cast<const uint16_t*>(job.prepared);
  const StripWalk<2> walk{job, strip_begin, strip_end, job.up.data == nullptr};
  PassWriter writer(job, tiles_of_weight);
  for (int64_t m = 0; m < job.rows; m += kTileRows) {
    const int64_t end = m + kTileRows < job.rows ? m + kTileRows : job.rows;
    const uint16_t* x0 = x + m / kRowBlock * x_tiles * kTileElements;
    const uint16_t* x1 = x0 + x_tiles * kTileElements;
    for (int64_t pass = 0; pass < walk.passes(); ++pass) {
      const StripGroup<2> group = walk.group(pass);
      const uint16_t* w0 = dense_strip(*group.weight[0], group.strip[0]);
      const uint16_t* w1 = dense_strip(*group.weight[1], group.strip[1]);
      writer.begin_pass();
      clear_tiles();
      if (m == 0) {  // the weights are read from memory
        multiply_two<true>(w0, w1, x0, x1, tiles_of_weight, writer);
      } else {
        multiply_two<false>(w0, w1, x0, x1, tiles_of_weight, writer);
      }
      writer.end_pass(group, m, end);
    }
  }
  writer.write_rest();
}

static void linear_amx(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  if (job.rows <= kRowBlock) {
    amx_few_rows<4>(job, strip_begin, strip_end);
  } else if (job.rows <= kTileRows) {
    amx_few_rows<2>(job, strip_begin, strip_end);
  } else {
    amx_many_rows(job, strip_begin, strip_end);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
