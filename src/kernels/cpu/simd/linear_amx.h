// linear_amx.h - products on the tile unit. The weight is the A operand (16 outputs x 32 inputs, as
// packed), the rows are the B operand (16 input pairs x 16 rows), so a tile of results is
// [16 outputs][16 rows]. A row's results depend on its own column alone: neighbours, and what
// stands in unused columns, leave no trace (checked by octavo_bits_test). No MLX.
#pragma once

#ifdef OCTAVO_ISA_AMX

#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/decode_bf16.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/norm.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_ISA {

inline constexpr int64_t kTileElements = 512;        // bfloat16 numbers of a tile: 1 KiB
inline constexpr int64_t kTileRows = 2 * kRowBlock;  // rows of one pass: two column blocks

static int64_t amx_prepared_bytes(int64_t rows, int64_t cols) {
  const int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  // One block more, so that a pass over two may read past an odd last one.
  return (blocks + 1) * kRowBlock * prepared_cols(cols) * 2;
}

// Rows [row_begin, row_end) as tiles [block][inputs / 32][16 pairs][16 rows][2].
static void amx_prepare(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  const int64_t tiles = prepared_cols(job.cols) / 32;
  auto* prepared = reinterpret_cast<uint16_t*>(job.prepared);
  for (int64_t first = row_begin; first < row_end; first += kRowBlock) {
    const int64_t rows = row_end - first < kRowBlock ? row_end - first : kRowBlock;
    uint16_t* block = prepared + first / kRowBlock * tiles * kTileElements;
    RowNorm norms[kRowBlock];
    for (int64_t m = 0; m < rows; ++m) norms[m] = row_norm(job, first + m);
    for (int64_t t = 0; t < tiles; ++t) {
      alignas(64) uint16_t pairs[kRowBlock][32];
      for (int64_t m = 0; m < rows; ++m) {
        store_bf16(pairs[m], normed16(job, first + m, norms[m], t * 32));
        store_bf16(pairs[m] + 16, normed16(job, first + m, norms[m], t * 32 + 16));
      }
      uint16_t* tile = block + t * kTileElements;
      if (rows < 6) {
        const __m512i places = _mm512_slli_epi32(
            _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 4);
        for (int64_t m = 0; m < rows; ++m)
          _mm512_i32scatter_epi32(reinterpret_cast<int*>(tile) + m, places,
                                  _mm512_load_si512(pairs[m]), 4);
        continue;
      }
      for (int64_t m = rows; m < kRowBlock; ++m)
        _mm512_store_si512(pairs[m], _mm512_setzero_si512());
      __m512 lines[16];
      for (int m = 0; m < 16; ++m) lines[m] = _mm512_load_ps(pairs[m]);
      transpose16(lines);
      for (int i = 0; i < 16; ++i) _mm512_store_ps(tile + i * 32, lines[i]);
    }
  }
}

// The two strips of one pass: gate and up, or strip i of each half of the range, so that both are
// read forward from pass to pass and what is fetched ahead is what comes next.
struct StripPair {
  const PackedView* weight[2];
  int64_t strip[2];
  bool is_gated;
  bool has_second;
};

OCTAVO_INLINE int64_t pair_count(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const int64_t strips = strip_end - strip_begin;
  return job.up.data != nullptr ? strips : (strips + 1) / 2;
}

OCTAVO_INLINE StripPair strip_pair(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                                   int64_t index) {
  const int64_t first = strip_begin + index;
  if (job.up.data != nullptr) return {{&job.weight, &job.up}, {first, first}, true, true};
  const int64_t second = first + pair_count(job, strip_begin, strip_end);
  const bool has_second = second < strip_end;
  return {{&job.weight, &job.weight}, {first, has_second ? second : first}, false, has_second};
}

// Adds tiles [0, tiles) of both strips times one or two row blocks to tile registers 0..3.
template <bool TwoBlocks, bool Prefetch>
OCTAVO_INLINE void multiply_tiles(const uint16_t* w0, const uint16_t* w1, const uint16_t* x0,
                                  const uint16_t* x1, int64_t tiles) {
  // Far enough ahead that memory keeps streaming while the tiles are busy.
  constexpr int64_t kAhead = 4096;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t at = t * kTileElements;
    _tile_loadd(4, w0 + at, 64);
    _tile_loadd(6, x0 + at, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, w1 + at, 64);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (Prefetch) {
#pragma GCC unroll 16
      for (int64_t line = 0; line < kTileElements; line += 32) {
        _mm_prefetch(w0 + at + kAhead + line, _MM_HINT_T0);
        _mm_prefetch(w1 + at + kAhead + line, _MM_HINT_T0);
      }
    }
    if constexpr (TwoBlocks) {
      _tile_loadd(7, x1 + at, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

// Quantised strips for one pass: decoded a unit at a time just before they are multiplied.
template <bool TwoBlocks>
static void multiply_units(const StripPair& pair, const CodeShape& shape0, const CodeShape& shape1,
                           const uint16_t* x0, const uint16_t* x1) {
  const CodeTable table0 = code_table(shape0);
  const CodeTable table1 = code_table(shape1);
  const std::byte* strip0 = pair.weight[0]->strip(pair.strip[0]);
  const std::byte* strip1 = pair.weight[1]->strip(pair.strip[1]);
  alignas(64) uint16_t numbers[2][2][2 * kTileElements];
  for (int64_t u = 0; u < shape0.units; ++u) {
    auto& unit = numbers[u & 1];
    decode_unit_bf16(shape0, table0, strip0, u, unit[0]);
    decode_unit_bf16(shape1, table1, strip1, u, unit[1]);
    memory_written();
    const int64_t at = u * 2 * kTileElements;
    multiply_tiles<TwoBlocks, false>(unit[0], unit[1], x0 + at, x1 + at, 2);
  }
}

// One tile of results [16 outputs][16 rows] as rows of 16 outputs.
OCTAVO_INLINE void tile_rows(const float* tile, int64_t rows, __m512* out) {
  if (rows <= 2) {
    const __m512i places = _mm512_slli_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 4);
    for (int64_t m = 0; m < rows; ++m) out[m] = _mm512_i32gather_ps(places, tile + m, 4);
    return;
  }
  for (int n = 0; n < 16; ++n) out[n] = _mm512_load_ps(tile + n * 16);
  transpose16(out);
}

static void finish_tiles(const LinearJob& job, const StripPair& pair, const float (*tiles)[256],
                         int64_t row_begin, int64_t row_end) {
  for (int64_t block = 0; row_begin + block * kRowBlock < row_end; ++block) {
    const int64_t first = row_begin + block * kRowBlock;
    const int64_t rows = row_end - first < kRowBlock ? row_end - first : kRowBlock;
    __m512 sums[16];
    __m512 others[16];
    tile_rows(tiles[2 * block], rows, sums);
    if (pair.has_second) tile_rows(tiles[2 * block + 1], rows, others);
    for (int64_t m = 0; m < rows; ++m) {
      if (pair.is_gated) {
        finish_row(job, first + m, pair.strip[0], {{sums[m]}}, {{others[m]}});
        continue;
      }
      finish_row(job, first + m, pair.strip[0], {{sums[m]}}, zero());
      if (pair.has_second) finish_row(job, first + m, pair.strip[1], {{others[m]}}, zero());
    }
  }
}

OCTAVO_INLINE void clear_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

OCTAVO_INLINE void store_tiles(float (*tiles)[256], bool two_blocks) {
  _tile_stored(0, tiles[0], 64);
  _tile_stored(1, tiles[1], 64);
  if (two_blocks) {
    _tile_stored(2, tiles[2], 64);
    _tile_stored(3, tiles[3], 64);
  }
}

OCTAVO_INLINE const uint16_t* dense_strip(const PackedView& weight, int64_t strip) {
  return reinterpret_cast<const uint16_t*>(weight.strip(strip));
}

// At most two row blocks: weights are read once, straight from memory.
static void amx_few_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const auto* x0 = reinterpret_cast<const uint16_t*>(job.prepared);
  const uint16_t* x1 = x0 + x_tiles * kTileElements;
  const bool two = job.rows > kRowBlock;
  const int64_t pairs = pair_count(job, strip_begin, strip_end);
  alignas(64) float tiles[4][256];
  for (int64_t index = 0; index < pairs; ++index) {
    const StripPair pair = strip_pair(job, strip_begin, strip_end, index);
    clear_tiles();
    if (pair.weight[0]->layout.bits != 0) {
      const CodeShape shape0 = code_shape(pair.weight[0]->layout);
      const CodeShape shape1 = code_shape(pair.weight[1]->layout);
      if (two) {
        multiply_units<true>(pair, shape0, shape1, x0, x1);
      } else {
        multiply_units<false>(pair, shape0, shape1, x0, x1);
      }
    } else {
      const uint16_t* w0 = dense_strip(*pair.weight[0], pair.strip[0]);
      const uint16_t* w1 = dense_strip(*pair.weight[1], pair.strip[1]);
      const int64_t count = job.weight.layout.padded_cols / 32;
      if (two) {
        multiply_tiles<true, true>(w0, w1, x0, x1, count);
      } else {
        multiply_tiles<false, true>(w0, w1, x0, x1, count);
      }
    }
    store_tiles(tiles, two);
    finish_tiles(job, pair, tiles, 0, job.rows);
  }
}

// Many rows: the strips stay in the cache (decoded once if quantised) while the rows pass by.
static void amx_many_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                          uint16_t* panels) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const auto* x = reinterpret_cast<const uint16_t*>(job.prepared);
  const bool is_gated = job.up.data != nullptr;
  const int64_t pairs = pair_count(job, strip_begin, strip_end);
  const int64_t panel = kStripRows * job.weight.layout.padded_cols;
  const auto numbers = [&](const PackedView& weight, int64_t strip, bool up) {
    if (weight.layout.bits == 0) return dense_strip(weight, strip);
    const int64_t index = (strip - strip_begin) * (is_gated ? 2 : 1) + (up ? 1 : 0);
    return static_cast<const uint16_t*>(panels + index * panel);
  };
  for (int64_t strip = strip_begin; strip < strip_end; ++strip) {
    if (job.weight.layout.bits != 0)
      decode_strip_bf16(job.weight, strip,
                        const_cast<uint16_t*>(numbers(job.weight, strip, false)));
    if (is_gated && job.up.layout.bits != 0)
      decode_strip_bf16(job.up, strip, const_cast<uint16_t*>(numbers(job.up, strip, true)));
  }
  memory_written();
  alignas(64) float tiles[4][256];
  for (int64_t m = 0; m < job.rows; m += kTileRows) {
    const int64_t end = m + kTileRows < job.rows ? m + kTileRows : job.rows;
    const bool two = end - m > kRowBlock;
    const uint16_t* x0 = x + m / kRowBlock * x_tiles * kTileElements;
    const uint16_t* x1 = x0 + x_tiles * kTileElements;
    for (int64_t index = 0; index < pairs; ++index) {
      const StripPair pair = strip_pair(job, strip_begin, strip_end, index);
      const uint16_t* w0 = numbers(*pair.weight[0], pair.strip[0], false);
      const uint16_t* w1 = numbers(*pair.weight[1], pair.strip[1], is_gated);
      const int64_t count = job.weight.layout.padded_cols / 32;
      clear_tiles();
      if (two) {
        multiply_tiles<true, false>(w0, w1, x0, x1, count);
      } else {
        multiply_tiles<false, false>(w0, w1, x0, x1, count);
      }
      store_tiles(tiles, two);
      finish_tiles(job, pair, tiles, m, end);
    }
  }
}

static void linear_amx(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                       std::byte* scratch) {
  memory_written();
  if (job.rows <= kTileRows) {
    amx_few_rows(job, strip_begin, strip_end);
  } else {
    amx_many_rows(job, strip_begin, strip_end, reinterpret_cast<uint16_t*>(scratch));
  }
}

static int64_t amx_scratch(const LinearJob& job, int64_t strips) {
  if (job.rows <= kTileRows) return 0;
  return strips * 2 * kStripRows * job.weight.layout.padded_cols * 2;
}

}  // namespace octavo::cpu::OCTAVO_ISA

#endif
