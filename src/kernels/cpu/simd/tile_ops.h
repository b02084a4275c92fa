// tile_ops.h - the tile instructions, by tile number. Written as assembly because gcc 12's
// intrinsics do not tell the compiler which memory they read. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include <cstdint>

#include "kernels/cpu/simd/reg.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

template <int kTile>
OCTAVO_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
OCTAVO_INLINE void tile_load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
// The same for a tile that is not read again soon: it need not displace others in the cache.
template <int kTile>
OCTAVO_INLINE void tile_stream(const void* from, int64_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
OCTAVO_INLINE void tile_store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
// kSum[m][n] += kA[m][2k] * kB[k][2n] + kA[m][2k + 1] * kB[k][2n + 1] over 16 k.
template <int kSum, int kA, int kB>
OCTAVO_INLINE void tile_dot() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
