// reg.h - one vector register of the instruction set this file is compiled for, and the few
// operations the kernels need of it. Each set compiles the kernels with its own compiler flags in
// its own namespace. Code must not be shared between sets, so every function here is forced inline
// and no standard template is used. No MLX.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/simd_macros.h"

#if defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/reg_avx512.h"
#elif defined(OCTAVO_SIMD_AVX2)
#include "kernels/cpu/simd/reg_avx2.h"
#elif defined(OCTAVO_SIMD_NEON)
#include "kernels/cpu/simd/reg_neon.h"
#else
#include "kernels/cpu/simd/reg_scalar.h"
#endif
