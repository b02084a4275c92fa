// shared_types.h - lets one header serve a Metal kernel and its host code. No MLX.
//
// Structs of int32_t, uint32_t and float have one layout on both sides.
#pragma once

#ifdef __METAL_VERSION__
#include <metal_stdlib>
#define METAL_CONSTANT constant constexpr
#else
#include <cstdint>
#define METAL_CONSTANT inline constexpr
#endif
