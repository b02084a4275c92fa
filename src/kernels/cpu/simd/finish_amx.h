// finish_amx.h - writes the result tiles of a product, [16 outputs][16 rows] each, as rows. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/strip_walk.h"
#include "kernels/cpu/simd/tile_ops.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// One tile of results [16 outputs][16 rows] as rows of 16 outputs.
OCTAVO_INLINE void tile_rows(const float* tile, int64_t rows, Vec* out) {
  if (rows <= 2) {
    const __m512i places = _mm512_slli_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 4);
    for (int64_t m = 0; m < rows; ++m) out[m].r[0] = _mm512_i32gather_ps(places, tile + m, 4);
    return;
  }
  __m512 columns[16];
  for (int n = 0; n < 16; ++n) columns[n] = _mm512_load_ps(tile + n * 16);
  transpose16(columns);
  for (int m = 0; m < 16; ++m) out[m].r[0] = columns[m];
}

// The results of a pass: the tile of row block b and stream i is [b * streams + i].
struct PassResults {
  int64_t strip[4];
  bool present[4];
  int streams;
  int64_t row_begin;
  int64_t row_end;
  alignas(64) float tiles[4][256];
};

// Writes one of the four tiles (with its partner if gated).
static __attribute__((noinline)) void finish_tile(const LinearJob& job, const PassResults& results,
                                                  int index) {
  const bool is_gated = job.up.data != nullptr;
  const int stream = index % results.streams;
  const int64_t first = results.row_begin + index / results.streams * kRowBlock;
  const int64_t left = results.row_end - first;
  if (left <= 0 || !results.present[stream] || (is_gated && stream % 2 == 1)) return;
  const int64_t rows = left < kRowBlock ? left : kRowBlock;
  const int64_t strip = results.strip[stream];
  Vec sums[16];
  Vec ups[16];
  tile_rows(results.tiles[index], rows, sums);
  if (is_gated) tile_rows(results.tiles[index + 1], rows, ups);
  finish_rows(job, strip, first, rows, {sums, is_gated ? ups : nullptr});
}

OCTAVO_INLINE void clear_tiles() {
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
}

OCTAVO_INLINE void store_tiles(float (*tiles)[256]) {
  tile_store<0>(tiles[0], 64);
  tile_store<1>(tiles[1], 64);
  tile_store<2>(tiles[2], 64);
  tile_store<3>(tiles[3], 64);
}

// Writes a pass's results one tile at a time during the next pass, so that the tile unit is never
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

  // Stores the tile registers of the finished pass.
  template <int Streams>
  OCTAVO_INLINE void end_pass(const StripGroup<Streams>& group, int64_t row_begin,
                              int64_t row_end) {
    write_rest();
    PassResults& done = results_[current_];
    for (int i = 0; i < Streams; ++i) {
      done.strip[i] = group.strip[i];
      done.present[i] = group.present[i];
    }
    done.streams = Streams;
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
  int written_ = 4;  // tiles of the previous results already written
  int current_ = 0;
  PassResults results_[2];
};

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
