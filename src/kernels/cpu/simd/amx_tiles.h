// amx_tiles.h - the tile configuration of all kernels: eight tiles of 16 rows of 64 bytes. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include <immintrin.h>

#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static void configure_tiles() {
  struct alignas(64) Config {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static_assert(sizeof(Config) == 64);
  static const Config config;
  // gcc 12's intrinsic declares only the first 8 bytes as read.
  asm volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
