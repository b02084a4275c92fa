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

// The strips of one pass. Plain: strip i of each part of the range; gated: gate and up of strip i
// of each part. So every stream is read forward from pass to pass, what is fetched ahead is what
// comes next, and several streams at once draw more from memory than one.
struct StripGroup {
  const PackedView* weight[4];
  int64_t strip[4];
  bool present[4];
};

template <int Streams>
struct StripWalk {
  const LinearJob& job;
  int64_t begin;
  int64_t end;

  bool is_gated() const { return job.up.data != nullptr; }
  int64_t parts() const { return is_gated() ? Streams / 2 : Streams; }
  int64_t passes() const { return (end - begin + parts() - 1) / parts(); }

  OCTAVO_INLINE StripGroup group(int64_t pass) const {
    StripGroup group;
    for (int i = 0; i < Streams; ++i) {
      const int64_t part = is_gated() ? i / 2 : i;
      const int64_t strip = begin + part * passes() + pass;
      group.present[i] = strip < end && (part == 0 || passes() * part + pass < end - begin);
      group.strip[i] = group.present[i] ? strip : begin + pass;
      group.weight[i] = is_gated() && i % 2 == 1 ? &job.up : &job.weight;
    }
    return group;
  }
};

inline constexpr int64_t kAheadElements = 1024;  // 2 KiB of bfloat16 weights

OCTAVO_INLINE void fetch_tile_ahead(const uint16_t* tile) {
#pragma GCC unroll 16
  for (int64_t line = 0; line < kTileElements; line += 32)
    _mm_prefetch(tile + kAheadElements + line, _MM_HINT_T0);
}

// Tile register i += tiles [0, tiles) of strip i times one row block.
template <bool Prefetch>
OCTAVO_INLINE void multiply_four(const uint16_t* const (&w)[4], const uint16_t* x, int64_t tiles) {
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t at = t * kTileElements;
    _tile_loadd(6, x + at, 64);
    _tile_loadd(4, w[0] + at, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, w[1] + at, 64);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (Prefetch) {
      fetch_tile_ahead(w[0] + at);
      fetch_tile_ahead(w[1] + at);
    }
    _tile_loadd(4, w[2] + at, 64);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(5, w[3] + at, 64);
    _tile_dpbf16ps(3, 5, 6);
    if constexpr (Prefetch) {
      fetch_tile_ahead(w[2] + at);
      fetch_tile_ahead(w[3] + at);
    }
  }
}

// Tile register 2 b + i += tiles [0, tiles) of strip i times row block b.
template <bool Prefetch>
OCTAVO_INLINE void multiply_two(const uint16_t* w0, const uint16_t* w1, const uint16_t* x0,
                                const uint16_t* x1, int64_t tiles) {
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t at = t * kTileElements;
    _tile_loadd(4, w0 + at, 64);
    _tile_loadd(6, x0 + at, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, w1 + at, 64);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (Prefetch) {
      fetch_tile_ahead(w0 + at);
      fetch_tile_ahead(w1 + at);
    }
    _tile_loadd(7, x1 + at, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
}

OCTAVO_INLINE const uint16_t* dense_strip(const PackedView& weight, int64_t strip) {
  return reinterpret_cast<const uint16_t*>(weight.strip(strip));
}

// Quantised strips (one of a gated pair may be dense): decoded a unit at a time just before they
// are multiplied.
template <int Streams>
static void multiply_units(const StripGroup& group, const uint16_t* x0, const uint16_t* x1) {
  CodeShape shapes[Streams];
  CodeTable tables[Streams];
  const std::byte* strips[Streams];
  for (int i = 0; i < Streams; ++i) {
    strips[i] = group.weight[i]->strip(group.strip[i]);
    if (group.weight[i]->layout.bits == 0) continue;
    shapes[i] = code_shape(group.weight[i]->layout);
    tables[i] = code_table(shapes[i]);
  }
  const int64_t units = group.weight[0]->layout.padded_cols / kUnitCols;
  alignas(64) uint16_t numbers[Streams][2 * kTileElements];
  for (int64_t u = 0; u < units; ++u) {
    const int64_t at = u * 2 * kTileElements;
    const uint16_t* w[4];
    for (int i = 0; i < Streams; ++i) {
      if (group.weight[i]->layout.bits == 0) {
        w[i] = reinterpret_cast<const uint16_t*>(strips[i]) + at;
      } else {
        decode_unit_bf16(shapes[i], tables[i], strips[i], u, numbers[i]);
        w[i] = numbers[i];
      }
    }
    memory_written();
    if constexpr (Streams == 4) {
      multiply_four<false>(w, x0 + at, 2);
    } else {
      multiply_two<false>(w[0], w[1], x0 + at, x1 + at, 2);
    }
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

// The results of a pass. `tiles` of row block b and stream i: [b * streams + i].
static void finish_tiles(const LinearJob& job, const StripGroup& group, int streams,
                         const float (*tiles)[256], int64_t row_begin, int64_t row_end) {
  const bool is_gated = job.up.data != nullptr;
  for (int64_t block = 0; row_begin + block * kRowBlock < row_end; ++block) {
    const int64_t first = row_begin + block * kRowBlock;
    const int64_t rows = row_end - first < kRowBlock ? row_end - first : kRowBlock;
    for (int i = 0; i < streams; i += is_gated ? 2 : 1) {
      if (!group.present[i]) continue;
      __m512 sums[16];
      __m512 others[16];
      tile_rows(tiles[block * streams + i], rows, sums);
      if (is_gated) tile_rows(tiles[block * streams + i + 1], rows, others);
      for (int64_t m = 0; m < rows; ++m)
        finish_row(job, first + m, group.strip[i], {{sums[m]}},
                   is_gated ? Vec{{others[m]}} : zero());
    }
  }
}

OCTAVO_INLINE void clear_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

OCTAVO_INLINE void store_tiles(float (*tiles)[256]) {
  _tile_stored(0, tiles[0], 64);
  _tile_stored(1, tiles[1], 64);
  _tile_stored(2, tiles[2], 64);
  _tile_stored(3, tiles[3], 64);
}

// One row block and four streams, or two row blocks and two streams: weights are read once,
// straight from memory.
template <int Streams>
static void amx_few_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const int64_t tiles_of_weight = job.weight.layout.padded_cols / 32;
  const auto* x0 = reinterpret_cast<const uint16_t*>(job.prepared);
  const uint16_t* x1 = x0 + x_tiles * kTileElements;
  const StripWalk<Streams> walk{job, strip_begin, strip_end};
  alignas(64) float tiles[4][256];
  for (int64_t pass = 0; pass < walk.passes(); ++pass) {
    const StripGroup group = walk.group(pass);
    clear_tiles();
    if (job.weight.layout.bits != 0 || (walk.is_gated() && job.up.layout.bits != 0)) {
      multiply_units<Streams>(group, x0, x1);
    } else {
      const uint16_t* w[4];
      for (int i = 0; i < Streams; ++i) w[i] = dense_strip(*group.weight[i], group.strip[i]);
      if constexpr (Streams == 4) {
        multiply_four<true>(w, x0, tiles_of_weight);
      } else {
        multiply_two<true>(w[0], w[1], x0, x1, tiles_of_weight);
      }
    }
    store_tiles(tiles);
    finish_tiles(job, group, Streams, tiles, 0, job.rows);
  }
}

// Many rows: the strips stay in the cache (decoded once if quantised) while the rows pass by.
static void amx_many_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                          uint16_t* panels) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const int64_t tiles_of_weight = job.weight.layout.padded_cols / 32;
  const auto* x = reinterpret_cast<const uint16_t*>(job.prepared);
  const StripWalk<2> walk{job, strip_begin, strip_end};
  const int64_t panel = kStripRows * job.weight.layout.padded_cols;
  const auto panel_of = [&](int64_t strip, bool up) {
    const int64_t index = (strip - strip_begin) * (walk.is_gated() ? 2 : 1) + (up ? 1 : 0);
    return panels + index * panel;
  };
  for (int64_t strip = strip_begin; strip < strip_end; ++strip) {
    if (job.weight.layout.bits != 0) decode_strip_bf16(job.weight, strip, panel_of(strip, false));
    if (walk.is_gated() && job.up.layout.bits != 0)
      decode_strip_bf16(job.up, strip, panel_of(strip, true));
  }
  memory_written();
  const auto numbers = [&](const StripGroup& group, int i) {
    return group.weight[i]->layout.bits != 0 ? panel_of(group.strip[i], walk.is_gated() && i == 1)
                                             : dense_strip(*group.weight[i], group.strip[i]);
  };
  alignas(64) float tiles[4][256];
  for (int64_t m = 0; m < job.rows; m += kTileRows) {
    const int64_t end = m + kTileRows < job.rows ? m + kTileRows : job.rows;
    const uint16_t* x0 = x + m / kRowBlock * x_tiles * kTileElements;
    const uint16_t* x1 = x0 + x_tiles * kTileElements;
    for (int64_t pass = 0; pass < walk.passes(); ++pass) {
      const StripGroup group = walk.group(pass);
      clear_tiles();
      multiply_two<false>(numbers(group, 0), numbers(group, 1), x0, x1, tiles_of_weight);
      store_tiles(tiles);
      finish_tiles(job, group, 2, tiles, m, end);
    }
  }
}

static void linear_amx(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                       std::byte* scratch) {
  memory_written();
  if (job.rows <= kRowBlock) {
    amx_few_rows<4>(job, strip_begin, strip_end);
  } else if (job.rows <= kTileRows) {
    amx_few_rows<2>(job, strip_begin, strip_end);
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
