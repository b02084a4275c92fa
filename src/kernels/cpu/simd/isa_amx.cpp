// The amx kernels; the build gives this file their compiler flags.
#define OCTAVO_ISA amx
#define OCTAVO_ISA_AVX512
#define OCTAVO_ISA_BF16
#define OCTAVO_ISA_AMX
#include "kernels/cpu/simd/table.h"
