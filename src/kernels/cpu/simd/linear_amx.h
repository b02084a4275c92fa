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

// Thirty-two inputs of a row from input k on, normed and rounded to bfloat16.
OCTAVO_INLINE __m512i prepared32(const RowsJob& job, int64_t row, RowNorm norm, int64_t k) {
  alignas(64) uint16_t numbers[32];
  store_bf16(numbers, normed16(job, row, norm, k));
  store_bf16(numbers + 16, normed16(job, row, norm, k + 16));
  return _mm512_load_si512(numbers);
}

// The same for bfloat16 rows that have all thirty-two: RMS norm's weights come in registers.
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
// last row keep what they held: nothing they give is read.
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
          lines[m] = _mm512_loadu_si512(x + (first + m) * job.cols + k);
      } else if (whole && job.norm == Norm::kRms) {
        const Vec low = load_as(job.norm_weight, job.norm_dtype, k);
        const Vec high = load_as(job.norm_weight, job.norm_dtype, k + 16);
        for (int64_t m = 0; m < rows; ++m)
          lines[m] = normed32(x + (first + m) * job.cols + k, norms[m].factor, low, high);
      } else {
        for (int64_t m = 0; m < rows; ++m) lines[m] = prepared32(job, first + m, norms[m], k);
      }
      store_pairs(lines, rows, block + t * kTileElements);
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
  bool adjacent = false;  // plain strips side by side instead: their outputs share cache lines

  bool is_gated() const { return job.up.data != nullptr; }
  int64_t parts() const { return is_gated() ? Streams / 2 : Streams; }
  int64_t passes() const { return (end - begin + parts() - 1) / parts(); }

  OCTAVO_INLINE StripGroup group(int64_t pass) const {
    StripGroup group;
    for (int i = 0; i < Streams; ++i) {
      const int64_t part = is_gated() ? i / 2 : i;
      const int64_t strip =
          adjacent ? begin + pass * parts() + part : begin + part * passes() + pass;
      group.present[i] = strip < end;
      group.strip[i] = group.present[i] ? strip : begin;
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

// Tile register i += tiles [0, tiles) of strip i times one row block. `between` is called with
// every tile: other work, done while the products are.
template <bool Prefetch, typename Between>
OCTAVO_INLINE void multiply_four(const uint16_t* const (&w)[4], const uint16_t* x, int64_t tiles,
                                 Between& between) {
  for (int64_t t = 0; t < tiles; ++t) {
    between(t);
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

// Cache lines to fetch while a strip pair is multiplied: `lines` of them with every tile.
struct FetchAhead {
  const std::byte* from = nullptr;
  int64_t lines = 0;
};

// Tile register 2 b + i += tiles [0, tiles) of strip i times row block b.
template <bool Prefetch, typename Between>
OCTAVO_INLINE void multiply_two(const uint16_t* w0, const uint16_t* w1, const uint16_t* x0,
                                const uint16_t* x1, int64_t tiles, FetchAhead ahead,
                                Between& between) {
  for (int64_t t = 0; t < tiles; ++t) {
    between(t);
    for (int64_t line = 0; line < ahead.lines; ++line, ahead.from += 64)
      _mm_prefetch(ahead.from, _MM_HINT_T1);
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

// A quantised weight as the unit loop needs it.
struct UnitDecoder {
  CodeShape shape = {};
  CodeTable table = {};
};

OCTAVO_INLINE UnitDecoder unit_decoder(const PackedView& weight) {
  if (weight.data == nullptr || weight.layout.bits == 0) return {};
  const CodeShape shape = code_shape(weight.layout);
  return {shape, code_table(shape)};
}

// Tile registers are named by literals, so the streams' code is written by a macro.
// One unit (two tiles of weights) times one row block, whose two tiles stand in registers 6 and 7.
#define OCTAVO_UNIT_ONE_BLOCK(sums)      \
  _tile_loadd(4, w, 64);                 \
  _tile_dpbf16ps(sums, 4, 6);            \
  _tile_loadd(5, w + kTileElements, 64); \
  _tile_dpbf16ps(sums, 5, 7)
// The same times two row blocks.
#define OCTAVO_UNIT_TWO_BLOCKS(sums, others) \
  _tile_loadd(4, w, 64);                     \
  _tile_loadd(6, x0, 64);                    \
  _tile_dpbf16ps(sums, 4, 6);                \
  _tile_loadd(7, x1, 64);                    \
  _tile_dpbf16ps(others, 4, 7);              \
  _tile_loadd(5, w + kTileElements, 64);     \
  _tile_loadd(6, x0 + kTileElements, 64);    \
  _tile_dpbf16ps(sums, 5, 6);                \
  _tile_loadd(7, x1 + kTileElements, 64);    \
  _tile_dpbf16ps(others, 5, 7)

// Adds a unit of stream i to its tile registers.
template <int Streams>
OCTAVO_INLINE void multiply_unit(int i, const uint16_t* w, const uint16_t* x0, const uint16_t* x1) {
  if constexpr (Streams == 4) {
    switch (i) {
      case 0:
        OCTAVO_UNIT_ONE_BLOCK(0);
        return;
      case 1:
        OCTAVO_UNIT_ONE_BLOCK(1);
        return;
      case 2:
        OCTAVO_UNIT_ONE_BLOCK(2);
        return;
      default:
        OCTAVO_UNIT_ONE_BLOCK(3);
        return;
    }
  } else if (i == 0) {
    OCTAVO_UNIT_TWO_BLOCKS(0, 2);
  } else {
    OCTAVO_UNIT_TWO_BLOCKS(1, 3);
  }
}
#undef OCTAVO_UNIT_ONE_BLOCK
#undef OCTAVO_UNIT_TWO_BLOCKS

// Quantised strips (one of a gated pair may be dense), decoded a unit at a time. A unit is
// multiplied while the next one is decoded, so that neither waits for the other.
template <int Streams>
static void multiply_units(const StripGroup& group, const UnitDecoder (&decoders)[2], bool is_gated,
                           const uint16_t* x0, const uint16_t* x1) {
  const std::byte* strips[Streams];
  for (int i = 0; i < Streams; ++i) strips[i] = group.weight[i]->strip(group.strip[i]);
  const int64_t units = group.weight[0]->layout.padded_cols / kUnitCols;
  alignas(64) uint16_t numbers[2][Streams][2 * kTileElements];
  const uint16_t* w[2][Streams];
  for (int64_t u = 0; u <= units; ++u) {
    const int64_t before = (u - 1) * 2 * kTileElements;
    if (Streams == 4 && u > 0) {
      _tile_loadd(6, x0 + before, 64);
      _tile_loadd(7, x0 + before + kTileElements, 64);
    }
#pragma GCC unroll 4
    for (int i = 0; i < Streams; ++i) {
      if (u < units) {
        const UnitDecoder& decoder = decoders[is_gated ? i % 2 : 0];
        if (decoder.shape.bits == 0) {
          w[u & 1][i] = reinterpret_cast<const uint16_t*>(strips[i]) + u * 2 * kTileElements;
        } else {
          decode_unit_bf16(decoder.shape, decoder.table, strips[i], u, numbers[u & 1][i]);
          w[u & 1][i] = numbers[u & 1][i];
        }
        memory_written();
      }
      if (u > 0) multiply_unit<Streams>(i, w[(u - 1) & 1][i], x0 + before, x1 + before);
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

// Rows of one whole strip, with every choice made before the loop.
template <bool Gated, bool Residual, typename Out>
OCTAVO_INLINE void finish_block(const LinearJob& job, int64_t strip, int64_t first, int64_t rows,
                                const __m512* sums, const __m512* ups) {
  const int64_t n = strip * kStripRows;
  const Vec bias = job.bias != nullptr ? load_as(job.bias, job.bias_dtype, n) : zero();
  const Vec up_bias = job.up_bias != nullptr ? load_as(job.up_bias, job.bias_dtype, n) : zero();
  int64_t at = first * job.out_stride + job.out_first + n;
  for (int64_t m = 0; m < rows; ++m, at += job.out_stride) {
    Vec v{{sums[m]}};
    if (job.bias != nullptr) v = add(v, bias);
    if constexpr (Gated) {
      Vec up{{ups[m]}};
      if (job.up_bias != nullptr) up = add(up, up_bias);
      v = mul(activate(job.activation, v), up);
    }
    if constexpr (sizeof(Out) == 4) {
      if constexpr (Residual) v = add(load(static_cast<const float*>(job.residual) + at), v);
      store(static_cast<float*>(job.out) + at, v);
    } else {
      if constexpr (Residual)
        v = add(load_bf16(static_cast<const uint16_t*>(job.residual) + at), v);
      store_bf16(static_cast<uint16_t*>(job.out) + at, v);
    }
  }
}

template <bool Gated, bool Residual>
OCTAVO_INLINE void finish_strip(const LinearJob& job, int64_t strip, int64_t first, int64_t rows,
                                const __m512* sums, const __m512* ups) {
  const bool whole = job.weight.layout.rows - strip * kStripRows >= kStripRows;
  if (whole && job.out_dtype == DType::kBFloat16)
    return finish_block<Gated, Residual, uint16_t>(job, strip, first, rows, sums, ups);
  if (whole && job.out_dtype == DType::kFloat32)
    return finish_block<Gated, Residual, float>(job, strip, first, rows, sums, ups);
  for (int64_t m = 0; m < rows; ++m)
    finish_row(job, first + m, strip, {{sums[m]}}, Gated ? Vec{{ups[m]}} : zero());
}

// What a pass leaves behind: the tile of row block b and stream i is [b * streams + i].
struct PassResults {
  StripGroup group;
  int streams;
  int64_t row_begin;
  int64_t row_end;
  alignas(64) float tiles[4][256];
};

// Writes out one of the four tiles (with its partner, if it is a gate's).
static __attribute__((noinline)) void finish_tile(const LinearJob& job, const PassResults& results,
                                                  int index) {
  const bool is_gated = job.up.data != nullptr;
  const int stream = index % results.streams;
  const int64_t first = results.row_begin + index / results.streams * kRowBlock;
  const int64_t left = results.row_end - first;
  if (left <= 0 || !results.group.present[stream] || (is_gated && stream % 2 == 1)) return;
  const int64_t rows = left < kRowBlock ? left : kRowBlock;
  const int64_t strip = results.group.strip[stream];
  __m512 sums[16];
  __m512 ups[16];
  tile_rows(results.tiles[index], rows, sums);
  if (is_gated) tile_rows(results.tiles[index + 1], rows, ups);
  if (is_gated && job.residual != nullptr) {
    finish_strip<true, true>(job, strip, first, rows, sums, ups);
  } else if (is_gated) {
    finish_strip<true, false>(job, strip, first, rows, sums, ups);
  } else if (job.residual != nullptr) {
    finish_strip<false, true>(job, strip, first, rows, sums, ups);
  } else {
    finish_strip<false, false>(job, strip, first, rows, sums, ups);
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

// Writes a pass's results out a tile at a time during the next one, so that the tile unit is never
// idle for long.
class PassWriter {
 public:
  PassWriter(const LinearJob& job, int64_t tiles_of_weight)
      : job_(job), stride_(tiles_of_weight >= 4 ? tiles_of_weight / 4 : 1) {}

  void begin_pass() { due_ = stride_ / 2; }

  // Called with every tile of a pass.
  OCTAVO_INLINE void operator()(int64_t t) {
    if (t != due_ || written_ == 4) return;
    finish_tile(job_, results_[1 - current_], written_++);
    due_ += stride_;
  }

  // Takes the tile registers of the pass that has ended.
  OCTAVO_INLINE void end_pass(const StripGroup& group, int streams, int64_t row_begin,
                              int64_t row_end) {
    write_rest();
    PassResults& done = results_[current_];
    done.group = group;
    done.streams = streams;
    done.row_begin = row_begin;
    done.row_end = row_end;
    store_tiles(done.tiles);
    current_ = 1 - current_;
    written_ = 0;
  }

  void write_rest() {
    while (written_ < 4) finish_tile(job_, results_[1 - current_], written_++);
  }

 private:
  const LinearJob& job_;
  int64_t stride_;
  int64_t due_ = 0;
  int written_ = 4;  // tiles of the other results that are written
  int current_ = 0;
  PassResults results_[2];
};

// One row block and four streams, or two row blocks and two streams: weights are read once,
// straight from memory.
template <int Streams>
static void amx_few_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const int64_t tiles_of_weight = job.weight.layout.padded_cols / 32;
  const auto* x0 = reinterpret_cast<const uint16_t*>(job.prepared);
  const uint16_t* x1 = x0 + x_tiles * kTileElements;
  const StripWalk<Streams> walk{job, strip_begin, strip_end};
  const UnitDecoder decoders[2] = {unit_decoder(job.weight), unit_decoder(job.up)};
  const bool is_quantized = decoders[0].shape.bits != 0 || decoders[1].shape.bits != 0;
  PassWriter writer(job, tiles_of_weight);
  for (int64_t pass = 0; pass < walk.passes(); ++pass) {
    const StripGroup group = walk.group(pass);
    writer.begin_pass();
    clear_tiles();
    if (is_quantized) {
      multiply_units<Streams>(group, decoders, walk.is_gated(), x0, x1);
    } else {
      const uint16_t* w[4];
      for (int i = 0; i < Streams; ++i) w[i] = dense_strip(*group.weight[i], group.strip[i]);
      if constexpr (Streams == 4) {
        multiply_four<true>(w, x0, tiles_of_weight, writer);
      } else {
        multiply_two<true>(w[0], w[1], x0, x1, tiles_of_weight, {}, writer);
      }
    }
    writer.end_pass(group, Streams, 0, job.rows);
  }
  writer.write_rest();
}

// Many rows: the strips stay in the cache (decoded once if quantised) while the rows pass by.
static void amx_many_rows(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                          uint16_t* panels) {
  const int64_t x_tiles = prepared_cols(job.weight.layout.cols) / 32;
  const int64_t tiles_of_weight = job.weight.layout.padded_cols / 32;
  const auto* x = reinterpret_cast<const uint16_t*>(job.prepared);
  const StripWalk<2> walk{job, strip_begin, strip_end, job.up.data == nullptr};
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
  PassWriter writer(job, tiles_of_weight);
  for (int64_t m = 0; m < job.rows; m += kTileRows) {
    const int64_t end = m + kTileRows < job.rows ? m + kTileRows : job.rows;
    const uint16_t* x0 = x + m / kRowBlock * x_tiles * kTileElements;
    const uint16_t* x1 = x0 + x_tiles * kTileElements;
    // The next two row blocks (32 lines for each tile of these) come while this pair's are in use.
    FetchAhead next{reinterpret_cast<const std::byte*>(x1 + x_tiles * kTileElements),
                    end < job.rows ? (32 + walk.passes() - 1) / walk.passes() : 0};
    for (int64_t pass = 0; pass < walk.passes(); ++pass) {
      const StripGroup group = walk.group(pass);
      writer.begin_pass();
      clear_tiles();
      if (m == 0) {  // the weights come from memory
        multiply_two<true>(numbers(group, 0), numbers(group, 1), x0, x1, tiles_of_weight, next,
                           writer);
      } else {
        multiply_two<false>(numbers(group, 0), numbers(group, 1), x0, x1, tiles_of_weight, next,
                            writer);
      }
      next.from += next.lines * 64 * tiles_of_weight;
      writer.end_pass(group, 2, m, end);
    }
  }
  writer.write_rest();
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
