// AMX: 2 x 2 tiles of sums; operands are loaded from L1, as in any product.
#include <immintrin.h>

#include "bench/probes/probe.h"
#include "bench/probes/vector_loops.h"

namespace octavo::bench::probes {
namespace {

constexpr double kTileRoundFlops = 4 * 2.0 * 16 * 16 * 32;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

float tile_loop(int64_t rounds) {
  constexpr int kTileElements = 16 * 32;
  TileConfig config;
  alignas(64) uint16_t x[2 * kTileElements];
  alignas(64) uint16_t w[2 * kTileElements];
  alignas(64) float out[256];
  for (auto& value : x) value = 0x3f80;
  for (auto& value : w) value = 0x3f80;
  // The compiler does not know that the tile instructions below read this memory.
  asm volatile("" : : "r"(&config), "r"(x), "r"(w) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_loadd(4, x, 64);
    _tile_loadd(5, x + kTileElements, 64);
    _tile_loadd(6, w, 64);
    _tile_loadd(7, w + kTileElements, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, out, 64);
  _tile_release();
  return out[0];
}

}  // namespace

const Probe kAmx = {.read = read_loop<64>,
                    .fp32 = {kFmaRoundFlops<64>, fma_loop<64>},
                    .bf16 = {kTileRoundFlops, tile_loop}};

}  // namespace octavo::bench::probes
