// activation_kind.h - names of the gated activations. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

enum class Activation : uint8_t { kSilu, kGeluTanh };

}  // namespace octavo
