// The avx512bf16 kernels; the build gives this file their compiler flags.
#define OCTAVO_ISA avx512bf16
#define OCTAVO_ISA_AVX512
#define OCTAVO_ISA_BF16
#include "kernels/cpu/simd/table.h"
