// norm_kind.h - names of the norms. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

enum class Norm : uint8_t { kNone, kRms, kLayer };

}  // namespace octavo
