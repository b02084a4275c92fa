// linear_amx.h - products on the tile unit. The weight is the A operand (16 outputs x 32 inputs, as
// packed), the rows are the B operand (16 input pairs x 16 rows), so a tile of results is
// [16 outputs][16 rows]. A row's results depend on its own column alone, not on its
// neighbours or on the contents of unused columns (checked by octavo_bits_test). No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/decode_bf16.h"
#include "kernels/cpu/simd/finish_amx.h"
#include "kernels/cpu/simd/rows_amx.h"
#include "kernels/cpu/simd/tile_ops.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kTileRows = 2 * kRowBlock;  // rows of one pass: two column blocks

template <int kTile>
OCTAVO_INLINE void load_tile(const uint16_t* from) {
  tile_load<kTile>(from, 64);
}

template <int Streams>
struct StripWalk {
  const LinearJob& job;
  int64_t begin;
  int64_t end;
  bool adjacent = false;  // adjacent strips instead: their outputs share cache lines

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

// A quantised weight in the form of the unit loop.
struct UnitDecoder {
  CodeShape shape = {};
  CodeTable table = {};
};

OCTAVO_INLINE UnitDecoder unit_decoder(const PackedView& weight) {
  if (weight.data == nullptr || weight.layout.bits == 0) return {};
  const CodeShape shape = code_shape(weight.layout);
  return {shape, code_table(shape)};
}

// Adds one unit (two tiles of weights) of stream kStream to its tile registers: kStream, with one
// row block, whose two tiles are in registers 6 and 7; kStream and kStream + 2 with two.
template <int Streams, int kStream>
OCTAVO_INLINE void multiply_unit(const uint16_t* w, const uint16_t* x0, const uint16_t* x1) {
  if constexpr (Streams == 4) {
    load_tile<4>(w);
    tile_dot<kStream, 4, 6>();
    load_tile<5>(w + kTileElements);
    tile_dot<kStream, 5, 7>();
  } else {
    load_tile<4>(w);
    load_tile<6>(x0);
    tile_dot<kStream, 4, 6>();
    load_tile<7>(x1);
    tile_dot<kStream + 2, 4, 7>();
    load_tile<5>(w + kTileElements);
    load_tile<6>(x0 + kTileElements);
    tile_dot<kStream, 5, 6>();
    load_tile<7>(x1 + kTileElements);
    tile_dot<kStream + 2, 5, 7>();
  }
}

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
  // Decodes stream kStream of unit u, and multiplies the previous unit.
  const auto advance = [&]<int kStream>(int64_t u) OCTAVO_INLINE_LAMBDA {
    const UnitDecoder& decoder = decoders[is_gated ? kStream % 2 : 0];
    if (u < units && decoder.shape.bits == 0) {
      w[u & 1][kStream] =
          reinterpret_cast<const uint16_t*>(strips[kStream]) + u * 2 * kTileElements;
    } else if (u < units) {
      decode_unit_bf16(decoder.shape, decoder.table, strips[kStream], u, numbers[u & 1][kStream]);
      w[u & 1][kStream] = numbers[u & 1][kStream];
    }
    const int64_t before = (u - 1) * 2 * kTileElements;
    if (u > 0) multiply_unit<Streams, kStream>(w[(u - 1) & 1][kStream], x0 + before, x1 + before);
  };
  for (int64_t u = 0; u <= units; ++u) {
    if (Streams == 4 && u > 0) {
      const uint16_t* x = x0 + (u - 1) * 2 * kTileElements;
      load_tile<6>(x);
      load_tile<7>(x + kTileElements);
    }
    advance.template operator()<0>(u);
    advance.template operator()<1>(u);
    if constexpr (Streams == 4) {
      advance.template operator()<2>(u);
      advance.template operator()<3>(u);
    }
  }
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
        multiply_four(w, x0, tiles_of_weight, writer);
      } else {
        multiply_two<true>(w[0], w[1], x0, x1, tiles_of_weight, writer);
      }
    }
    writer.end_pass(group, Streams, 0, job.rows);
  }
  writer.write_rest();
}

// Many rows: the strips stay in the cache (decoded once if quantised) for all rows.
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
  const auto numbers = [&](const StripGroup& group, int i) {
    return group.weight[i]->layout.bits != 0 ? panel_of(group.strip[i], walk.is_gated() && i == 1)
                                             : dense_strip(*group.weight[i], group.strip[i]);
  };
  PassWriter writer(job, tiles_of_weight);
  for (int64_t m = 0; m < job.rows; m += kTileRows) {
    const int64_t end = m + kTileRows < job.rows ? m + kTileRows : job.rows;
    const uint16_t* x0 = x + m / kRowBlock * x_tiles * kTileElements;
    const uint16_t* x1 = x0 + x_tiles * kTileElements;
    for (int64_t pass = 0; pass < walk.passes(); ++pass) {
      const StripGroup group = walk.group(pass);
      writer.begin_pass();
      clear_tiles();
      if (m == 0) {  // the weights are read from memory
        multiply_two<true>(numbers(group, 0), numbers(group, 1), x0, x1, tiles_of_weight, writer);
      } else {
        multiply_two<false>(numbers(group, 0), numbers(group, 1), x0, x1, tiles_of_weight, writer);
      }
      writer.end_pass(group, 2, m, end);
    }
  }
  writer.write_rest();
}

static void linear_amx(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                       std::byte* scratch) {
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

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
