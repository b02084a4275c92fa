// The scalar kernels; the build gives this file their compiler flags.
#define OCTAVO_ISA scalar
#include "kernels/cpu/simd/table.h"
