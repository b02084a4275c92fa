// isa_macros.h - the namespace and the inlining of code compiled for one instruction set. No MLX.
#pragma once

#ifndef OCTAVO_ISA
#define OCTAVO_ISA scalar
#endif
#define OCTAVO_INLINE inline __attribute__((always_inline))
#define OCTAVO_INLINE_LAMBDA __attribute__((always_inline))
