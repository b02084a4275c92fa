// iq_grids.h - the tables of combinations of GGUF's IQ2 and IQ3 formats. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Four indices of 3 bits, one per 4 bits, the lowest for the first input.
extern const uint16_t kIQ3_SGrid[512];
extern const uint16_t kIQ3_XXSGrid[256];
// Eight indices of 2 bits.
extern const uint16_t kIQ2_SGrid[1024];
extern const uint16_t kIQ2_XSGrid[512];
extern const uint16_t kIQ2_XXSGrid[256];

}  // namespace octavo
