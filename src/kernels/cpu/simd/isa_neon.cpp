// The neon kernels; the build gives this file their compiler flags.
#define OCTAVO_ISA neon
#define OCTAVO_ISA_NEON
#include "kernels/cpu/simd/table.h"
