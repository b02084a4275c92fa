// amx_tiles.h - the tile configuration: by default eight tiles of 16 rows of 64 bytes. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include <immintrin.h>

#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

OCTAVO_INLINE void load_config(const TileConfig& config) {
  // gcc 12's intrinsic declares only the first 8 bytes as read.
  asm volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}

static void configure_tiles() {
  static const TileConfig config;
  load_config(config);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
