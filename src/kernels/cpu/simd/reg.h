// reg.h - one vector register of the instruction set this file is compiled for, and the few
// operations the kernels need of it. Each simd/isa_*.cpp includes the kernels with its own compiler
// flags and its own OCTAVO_ISA namespace; nothing here may be shared between them, so everything is
// inlined by force and no standard template is used. No MLX.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/isa_macros.h"

#if defined(OCTAVO_ISA_AVX512)
#include "kernels/cpu/simd/reg_avx512.h"
#elif defined(OCTAVO_ISA_AVX2)
#include "kernels/cpu/simd/reg_avx2.h"
#elif defined(OCTAVO_ISA_NEON)
#include "kernels/cpu/simd/reg_neon.h"
#else
#include "kernels/cpu/simd/reg_scalar.h"
#endif
