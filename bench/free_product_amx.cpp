#include <immintrin.h>

#include "bench/free_product_tiles.h"

namespace octavo::bench {
namespace {

constexpr int kTileElements = kTileRows * kTileDepth;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void configure() {
  TileConfig config;
  // The compiler assumes that the instruction reads only 8 bytes.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

void store_rounded(uint16_t* out, __m512 values) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values)));
}

// Multiplies one or two tiles of rows by two of outputs over the box's depth. Tiles 0 to 3 hold the
// sums.
template <bool kTwoRows>
void multiply_block(const FreeJob& job, int row, int output, const Box& box) {
  const int64_t strip = int64_t{job.cols} / kTileDepth * kTileElements;
  const uint16_t* w0 = job.weight + output * strip;
  const uint16_t* w1 = w0 + strip;
  const uint16_t* x0 = job.tiles + row * strip;
  const uint16_t* x1 = x0 + strip;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTwoRows) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int k = box.depth_begin; k < box.depth_end; ++k) {
    _tile_loadd(4, x0 + k * kTileElements, 64);
    _tile_loadd(6, w0 + k * kTileElements, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, w1 + k * kTileElements, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTwoRows) {
      _tile_loadd(5, x1 + k * kTileElements, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

// Writes the [16][32] sums of one tile of rows.
void write_rows(const FreeJob& job, const float* block, int row, int output, float* sums) {
  for (int r = 0; r < kTileRows; ++r) {
    const int64_t at = (int64_t{row} * kTileRows + r) * job.outputs + output * kTileRows;
    const __m512 low = _mm512_load_ps(block + r * 32);
    const __m512 high = _mm512_load_ps(block + r * 32 + 16);
    if (sums != nullptr) {
      _mm512_storeu_ps(sums + at, low);
      _mm512_storeu_ps(sums + at + 16, high);
    } else if (row * kTileRows + r < job.rows) {
      store_rounded(job.out + at, low);
      store_rounded(job.out + at + 16, high);
    }
  }
}

}  // namespace

void pack_free(const uint16_t* weight, int outputs, int cols, uint16_t* packed) {
  for (int strip = 0; strip < outputs; strip += kTileRows) {
    for (int k = 0; k < cols; k += kTileDepth) {
      for (int pair = 0; pair < kTileDepth / 2; ++pair) {
        for (int n = 0; n < kTileRows; ++n) {
          const uint16_t* from = weight + int64_t{strip + n} * cols + k + 2 * pair;
          *packed++ = from[0];
          *packed++ = from[1];
        }
      }
    }
  }
}

void pack_rows(const FreeJob& job, int begin, int end) {
  const int depth = job.cols / kTileDepth;
  for (int row = begin * kTileRows; row < end * kTileRows; ++row) {
    uint16_t* tile =
        job.tiles + int64_t{row / kTileRows} * depth * kTileElements + row % kTileRows * kTileDepth;
    for (int k = 0; k < depth; ++k) {
      const __m512i values =
          row < job.rows ? _mm512_loadu_si512(job.x + int64_t{row} * job.cols + k * kTileDepth)
                         : _mm512_setzero_si512();
      _mm512_storeu_si512(tile + k * kTileElements, values);
    }
  }
}

void multiply_box(const FreeJob& job, const Box& box, float* sums) {
  configure();
  alignas(64) float block[2][kTileRows * 32];
  for (int output = box.output_begin; output < box.output_end; output += 2) {
    for (int row = box.row_begin; row < box.row_end; row += 2) {
      const bool two = row + 1 < box.row_end;
      if (two) {
        multiply_block<true>(job, row, output, box);
        _tile_stored(2, block[1], 128);
        _tile_stored(3, block[1] + 16, 128);
      } else {
        multiply_block<false>(job, row, output, box);
      }
      _tile_stored(0, block[0], 128);
      _tile_stored(1, block[0] + 16, 128);
      asm volatile("" : : "r"(block) : "memory");  // written by the tile stores
      write_rows(job, block[0], row, output, sums);
      if (two) write_rows(job, block[1], row + 1, output, sums);
    }
  }
  _tile_release();
}

void add_sums(const FreeJob& job, const float* a, const float* b, int begin, int end) {
  for (int64_t i = int64_t{begin} * job.outputs; i < int64_t{end} * job.outputs; i += 16) {
    store_rounded(job.out + i, _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
  }
}

}  // namespace octavo::bench
