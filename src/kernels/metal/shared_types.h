// shared_types.h - for headers shared by Metal kernels and host code. No MLX.
//
// Structs of int32_t, uint32_t and float have the same layout on both sides.
#pragma once

#ifdef __METAL_VERSION__
#include <metal_stdlib>
#define METAL_CONSTANT constant constexpr
#else
#include <cstdint>
#define METAL_CONSTANT inline constexpr
#endif
