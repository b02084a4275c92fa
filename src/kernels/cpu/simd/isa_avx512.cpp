// The avx512 kernels; the build gives this file their compiler flags.
#define OCTAVO_ISA avx512
#define OCTAVO_ISA_AVX512
#include "kernels/cpu/simd/table.h"
