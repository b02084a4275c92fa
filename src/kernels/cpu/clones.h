// clones.h - compiles a function once per instruction set and picks at start-up. The arithmetic
// written in the source is the same in each clone (no contraction), so the bits are too.
#pragma once

#if defined(__x86_64__) && !defined(OCTAVO_SANITIZED)
#define OCTAVO_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
// Sanitizers are not initialised yet when the loader resolves clones.
#define OCTAVO_CLONES
#endif
