// The avx2 kernels; the build gives this file their compiler flags.
#define OCTAVO_ISA avx2
#define OCTAVO_ISA_AVX2
#include "kernels/cpu/simd/table.h"
