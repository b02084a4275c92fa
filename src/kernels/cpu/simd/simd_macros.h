// simd_macros.h - the namespace and the inlining of code compiled for one instruction set. The
// build defines OCTAVO_SIMD_NAMESPACE and OCTAVO_SIMD_<extension> (cmake/CpuKernels.cmake). No MLX.
#pragma once

#ifndef OCTAVO_SIMD_NAMESPACE
#define OCTAVO_SIMD_NAMESPACE scalar
#endif
#define OCTAVO_INLINE inline __attribute__((always_inline))
#define OCTAVO_INLINE_LAMBDA __attribute__((always_inline))
