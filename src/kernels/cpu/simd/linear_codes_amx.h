// linear_codes_amx.h - the products of linear_codes.h on the bfloat16 tile unit, with the same bits: all
// its sums are exact (tile_digits.h). The rows are the A operand [16 rows][32 inputs], the codes are the
// B operand [16 pairs of inputs][16 outputs][2], so a tile of sums is [16 rows][16 outputs] and is
// folded a row at a time. No MLX.
//
// Two strips are multiplied at a time, in chunks of inputs whose unpacked codes stay in the first
// cache for all rows. Sums of a chunk are stored, then folded: vector instructions and tile loads and
// stores hinder each other if they alternate, and results stay in registers for a whole chunk.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/code_panel.h"
#include "kernels/cpu/simd/linear_codes.h"
#include "kernels/cpu/simd/tile_digits.h"
#include "kernels/cpu/simd/tile_ops.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int kPassStrips = 2;
// Rows of a pass that stay in the second cache, and their results.
inline constexpr int64_t kPassRowBytes = int64_t{640} << 10;
inline constexpr int64_t kMostPassBlocks = 32;
inline constexpr int64_t kTileLine = 64;

// Units in a chunk: their sums take 4 or 8 KiB.
template <int Parts>
inline constexpr int kChunkUnits = Parts == 1 ? 4 : 8 / Parts;

// A tile of A or B has at most 32 inputs, so a group of 64 takes two.
template <int Parts>
inline constexpr int kTileInputs = Parts == 4 ? 16 : 32;

// Tiles 0 .. 3 are sums, 4 and 5 codes, 6 and 7 rows.
class CodeTiles {
 public:
  CodeTiles(int64_t rows, int tile_inputs) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
      const bool is_codes = tile == 4 || tile == 5;
      config.rows[tile] = static_cast<uint8_t>(is_codes ? tile_inputs / 2 : rows);
      config.row_bytes[tile] = static_cast<uint16_t>(tile >= 6 ? tile_inputs * 2 : 64);
    }
    load_config(config);
  }
  ~CodeTiles() { configure_tiles(); }
  CodeTiles(const CodeTiles&) = delete;
  CodeTiles& operator=(const CodeTiles&) = delete;
};

// A unit of a strip, unpacked.
template <int Parts>
struct alignas(64) UnitPanel {
  uint16_t codes[kPanelNumbers];
  float scales[Parts][kStripRows];
};

// The sums of group `Step` of a chunk of two strips, in tiles 0 and 1 or 2 and 3.
template <int Parts, int Step>
OCTAVO_INLINE void multiply_group(const TileUnit* x, const UnitPanel<Parts>* const (&panels)[2]) {
  constexpr int kTileNumbers = kTileInputs<Parts> * kStripRows;
  constexpr int kUnit = Step / Parts, kPart = Step % Parts, kSum = Step % 2 * 2;
  const uint16_t* first = panels[0][kUnit].codes + kPart * kTileNumbers;
  const uint16_t* second = panels[1][kUnit].codes + kPart * kTileNumbers;
  tile_zero<kSum>();
  tile_zero<kSum + 1>();
  tile_load<6>(Parts == 4 ? x[kUnit].x[kPart / 2][0] + kPart % 2 * 16 : x[kUnit].x[kPart][0],
               kTileLine);
  tile_load<4>(first, kTileLine);
  tile_dot<kSum, 6, 4>();
  tile_load<5>(second, kTileLine);
  tile_dot<kSum + 1, 6, 5>();
  if constexpr (Parts == 1) {
    tile_load<7>(x[kUnit].x[1][0], kTileLine);
    tile_load<4>(first + kTileNumbers, kTileLine);
    tile_dot<kSum, 7, 4>();
    tile_load<5>(second + kTileNumbers, kTileLine);
    tile_dot<kSum + 1, 7, 5>();
  }
}

using TileSums = float[kRowBlock * kStripRows];

// Adds a chunk's sums to `Rows` rows of one strip.
template <int Parts, int Groups, int Rows>
OCTAVO_INLINE void fold_chunk(const TileSums* sums, const UnitPanel<Parts>* panel, bool is_first,
                              Vec* results) {
  __m512 out[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) out[r] = is_first ? _mm512_setzero_ps() : results[r].r[0];
#pragma GCC unroll 8
  for (int i = 0; i < Groups; ++i) {
    const __m512 scale = _mm512_load_ps(panel[i / Parts].scales[i % Parts]);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
      out[r] = _mm512_fmadd_ps(_mm512_load_ps(sums[i] + kStripRows * r), scale, out[r]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) results[r].r[0] = out[r];
}

// Codes to be fetched from memory meanwhile: `lines` of each strip per group of inputs, into the second
// cache if they are not used soon.
struct AheadCodes {
  const std::byte* strip[2] = {};
  int64_t lines = 0;
  bool is_soon = false;

  OCTAVO_INLINE void advance(int64_t groups) {
    for (const std::byte*& codes : strip) codes += groups * lines * kCodeLine;
  }
  OCTAVO_INLINE void fetch(int64_t group) const {
    for (int64_t line = group * lines; line < (group + 1) * lines; ++line) {
      for (const std::byte* codes : strip) {
        const auto* at = reinterpret_cast<const char*>(codes + line * kCodeLine);
        is_soon ? _mm_prefetch(at, _MM_HINT_T0) : _mm_prefetch(at, _MM_HINT_T1);
      }
    }
  }
};

// Adds the products of a chunk to `Rows` rows of two strips: results [strip][16]. Not inlined: it is
// called often with other arguments.
template <int Parts, int Units, int Rows>
static __attribute__((noinline)) void multiply_chunk(const TileUnit* x,
                                                     const UnitPanel<Parts>* const (&panels)[2],
                                                     bool is_first, const AheadCodes& ahead,
                                                     Vec* results) {
  constexpr int kGroups = Units * Parts;
  alignas(64) TileSums sums[2][kGroups];
  // Sums are stored one step late, when they are ready.
  const auto store_sums = [&]<int Step>() OCTAVO_INLINE_LAMBDA {
    tile_store<Step % 2 * 2>(sums[0][Step], kTileLine);
    tile_store<Step % 2 * 2 + 1>(sums[1][Step], kTileLine);
  };
  const auto step = [&]<int Step>() OCTAVO_INLINE_LAMBDA {
    multiply_group<Parts, Step>(x, panels);
    ahead.fetch(Step);
    if constexpr (Step > 0) store_sums.template operator()<Step - 1>();
  };
  const auto all = [&]<int... Step>(std::integer_sequence<int, Step...>)
                       OCTAVO_INLINE_LAMBDA { (step.template operator()<Step>(), ...); };
  all(std::make_integer_sequence<int, kGroups>());
  store_sums.template operator()<kGroups - 1>();
  for (int s = 0; s < 2; ++s)
    fold_chunk<Parts, kGroups, Rows>(sums[s], panels[s], is_first, results + s * kRowBlock);
}

// Adds the biases' products of two strips, biases [units * Parts][16] each.
template <int Parts, int Rows>
static __attribute__((noinline)) void add_biases(const TileRows<const std::byte>& x,
                                                 const float* first, const float* second,
                                                 Vec* first_results, Vec* second_results) {
  constexpr int kRows = 8;
#pragma GCC unroll 1
  for (int m = 0; m < Rows; m += kRows) {
    __m512 rest[2][kRows];
    for (int r = 0; r < kRows; ++r) rest[0][r] = rest[1][r] = _mm512_setzero_ps();
    for (int64_t u = 0; u < x.units; ++u) {
#pragma GCC unroll 4
      for (int part = 0; part < Parts; ++part) {
        const int64_t at = (u * Parts + part) * kStripRows;
        const __m512 biases[2] = {_mm512_load_ps(first + at), _mm512_load_ps(second + at)};
        const float* row_sums = x.sums(Parts, part) + u * kRowBlock + m;
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const __m512 row_sum = _mm512_set1_ps(row_sums[r]);
          rest[0][r] = _mm512_fmadd_ps(biases[0], row_sum, rest[0][r]);
          rest[1][r] = _mm512_fmadd_ps(biases[1], row_sum, rest[1][r]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      first_results[m + r].r[0] = _mm512_add_ps(first_results[m + r].r[0], rest[0][r]);
      second_results[m + r].r[0] = _mm512_add_ps(second_results[m + r].r[0], rest[1][r]);
    }
  }
}

// Scratch memory of a pass.
template <int Parts>
struct PassMemory {
  UnitPanel<Parts>* panels;  // [strip][kChunkUnits]
  float* biases;             // [strip][units * Parts][16]
  Vec* results;              // [block][strip][16 rows]

  PassMemory(std::byte* scratch, int64_t units)
      : panels(reinterpret_cast<UnitPanel<Parts>*>(scratch)),
        biases(reinterpret_cast<float*>(panels + kPassStrips * kChunkUnits<Parts>)),
        results(reinterpret_cast<Vec*>(biases + kPassStrips * units * Parts * kStripRows)) {}

  static int64_t bytes(int64_t units, int64_t blocks) {
    return kPassStrips * (kChunkUnits<Parts> * int64_t{sizeof(UnitPanel<Parts>)} +
                          units * Parts * int64_t{sizeof(Vec)}) +
           blocks * kPassStrips * kRowBlock * int64_t{sizeof(Vec)};
  }
};

// Two strips and some row blocks of one product.
template <int Parts, int Rows>
struct CodePass {
  const LinearJob& job;
  const CodeShape& shape;
  const CodeFold& fold;
  const PanelWriter& writer;
  const PassMemory<Parts> memory;
  const StripGroup<kPassStrips>& strips;
  int64_t first_block;
  int64_t blocks;
  const std::byte* codes[kPassStrips];  // of the strips
  const std::byte* next[kPassStrips];   // of the next pass's

  static constexpr int kChunk = kChunkUnits<Parts>;

  TileRows<const std::byte> rows_of(int64_t block) const {
    const int64_t bytes = shape.units * int64_t{sizeof(DigitUnit)};
    return {job.prepared + (first_block + block) * bytes, shape.units};
  }
  Vec* results(int64_t block, int64_t strip) const {
    return memory.results + (block * kPassStrips + strip) * kRowBlock;
  }
  float* biases(int64_t strip) const {
    return memory.biases + strip * shape.units * Parts * kStripRows;
  }

  UnitPanel<Parts>* panels(int s) const { return memory.panels + s * kChunk; }

  // What is fetched during the work on the first row block: a part of the chunk from `unit` on, or of
  // the next pass.
  AheadCodes ahead_of(int64_t unit) const {
    const int64_t bytes = (kChunk * shape.block_bytes) >> shape.block_shift;
    const int64_t share = kChunk * Parts * blocks * kCodeLine;
    AheadCodes ahead{.lines = (bytes + share - 1) / share, .is_soon = blocks == 1};
    for (int s = 0; s < kPassStrips; ++s) {
      ahead.strip[s] = next[s];
      if (unit < shape.units) {
        const UnitPlace place = unit_place(shape, codes[s], unit);
        ahead.strip[s] = place.group == 0 ? place.scales : place.codes;
      }
    }
    return ahead;
  }

  void unpack(int s, int64_t first_unit, int64_t units) const {
    for (int64_t u = 0; u < units; ++u) {
      const UnitPlace place = unit_place(shape, codes[s], first_unit + u);
      UnitPanel<Parts>& panel = panels(s)[u];
      writer.write(place.codes, panel.codes);
      for (int part = 0; part < Parts; ++part) {
        const GroupScale group = fold_scale(shape, fold, place, part);
        store(panel.scales[part], group.scale);
        if (fold.has_bias)
          store(biases(s) + ((first_unit + u) * Parts + part) * kStripRows, group.bias);
      }
    }
  }

  template <int Units>
  void multiply(int64_t first_unit) const {
    const bool is_last = first_unit + Units == shape.units;
    for (int s = 0; s < kPassStrips; ++s) unpack(s, first_unit, Units);
    AheadCodes ahead = ahead_of(first_unit + Units);
    for (int64_t b = 0; b < blocks; ++b) {
      const TileUnit* x = rows_of(b).inputs() + first_unit;
      if (is_last) fetch_outputs(b);
      multiply_chunk<Parts, Units, Rows>(x, {panels(0), panels(1)}, first_unit == 0, ahead,
                                         results(b, 0));
      ahead.advance(kChunk * Parts);
      if (is_last) finish(b);
    }
  }

  int64_t rows_in(int64_t block) const {
    const int64_t left = job.rows - (first_block + block) * kRowBlock;
    return left < kRowBlock ? left : kRowBlock;
  }

  // Lines that finish() writes, which would otherwise wait for each of them.
  void fetch_outputs(int64_t block) const {
    const int64_t bytes = job.out_dtype == DType::kFloat32 ? 4 : 2;
    for (int s = 0; s < kPassStrips; ++s) {
      const int64_t column = job.out_first + strips.strip[s] * kStripRows;
      for (int64_t r = 0; r < rows_in(block); ++r) {
        const int64_t row = (first_block + block) * kRowBlock + r;
        __builtin_prefetch(
            static_cast<const std::byte*>(job.out) + (row * job.out_stride + column) * bytes, 1);
      }
    }
  }

  void finish(int64_t block) const {
    if (fold.has_bias)
      add_biases<Parts, Rows>(rows_of(block), biases(0), biases(1), results(block, 0),
                              results(block, 1));
    const auto write = [&](int s, StripSums from) {
      finish_rows(job, strips.strip[s], (first_block + block) * kRowBlock, rows_in(block), from);
    };
    Vec* first = results(block, 0);
    Vec* second = results(block, 1);
    if (job.up.data != nullptr) return write(0, {first, second});
    if (strips.present[1] && strips.strip[1] == strips.strip[0] + 1)
      return write(0, {.sums = first, .ups = nullptr, .strips = 2, .stride = kRowBlock});
    write(0, {first, nullptr});
    if (strips.present[1]) write(1, {second, nullptr});
  }

  void run() const {
    const auto chunk = [&]<int... kLess>(int64_t u, std::integer_sequence<int, kLess...>)
                           OCTAVO_INLINE_LAMBDA {
                             const int64_t left = shape.units - u;
                             if (left >= kChunk) return multiply<kChunk>(u);
                             (void)((left == kLess + 1 && (multiply<kLess + 1>(u), true)) || ...);
                           };
    for (int64_t u = 0; u < shape.units; u += kChunk)
      chunk(u, std::make_integer_sequence<int, kChunk - 1>());
  }
};

static int64_t pass_blocks(int64_t units, int64_t blocks) {
  int64_t most = kPassRowBytes / (units * int64_t{sizeof(TileUnit)});
  if (most < 4) most = 4;
  if (most > kMostPassBlocks) most = kMostPassBlocks;
  return blocks < most ? blocks : most;
}

template <int Parts, int Rows>
static void amx_codes(const LinearJob& job, const CodeShape& shape, int64_t strip_begin,
                      int64_t strip_end, std::byte* scratch) {
  const CodeTiles tiles(job.rows < kRowBlock ? job.rows : kRowBlock, kTileInputs<Parts>);
  const CodeFold fold = code_fold(shape);
  const PanelWriter writer(shape);
  const PassMemory<Parts> memory(scratch, shape.units);
  const int64_t blocks = (job.rows + kRowBlock - 1) / kRowBlock;
  const int64_t most = pass_blocks(shape.units, blocks);
  const StripWalk<kPassStrips> walk{job, strip_begin, strip_end, blocks > 1};
  for (int64_t b = 0; b < blocks; b += most) {
    const int64_t count = blocks - b < most ? blocks - b : most;
    for (int64_t pass = 0; pass < walk.passes(); ++pass) {
      const StripGroup<kPassStrips> strips = walk.group(pass), next = walk.group(pass + 1);
      CodePass<Parts, Rows>{job,
                            shape,
                            fold,
                            writer,
                            memory,
                            strips,
                            b,
                            count,
                            {strips.data(0), strips.data(1)},
                            {next.data(0), next.data(1)}}
          .run();
    }
  }
}

// Up to this many rows, vector products are faster than tiles, and rows are prepared for those.
inline constexpr int64_t kVectorRows = 4;

static void linear_codes_amx(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                             std::byte* scratch) {
  if (job.form_rows() <= kVectorRows) return linear_codes(job, strip_begin, strip_end);
  const CodeShape shape = code_shape(job.weight.layout);
  const auto run = [&]<int Parts>() OCTAVO_INLINE_LAMBDA {
    if (job.rows <= kRowBlock / 2)
      return amx_codes<Parts, kRowBlock / 2>(job, shape, strip_begin, strip_end, scratch);
    amx_codes<Parts, kRowBlock>(job, shape, strip_begin, strip_end, scratch);
  };
  if (shape.parts == 1) return run.template operator()<1>();
  if (shape.parts == 2) return run.template operator()<2>();
  run.template operator()<4>();
}

static int64_t codes_amx_scratch(const LinearJob& job) {
  const CodeShape shape = code_shape(job.weight.layout);
  const int64_t blocks = pass_blocks(shape.units, (job.rows + kRowBlock - 1) / kRowBlock);
  if (shape.parts == 1) return PassMemory<1>::bytes(shape.units, blocks);
  if (shape.parts == 2) return PassMemory<2>::bytes(shape.units, blocks);
  return PassMemory<4>::bytes(shape.units, blocks);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
