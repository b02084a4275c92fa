// step_wire.h - sizes that the encoder and the decoder of steps share. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo {

inline constexpr size_t kMostMaskFailure = 16u << 10;

// The least bytes of elements on the wire.
inline constexpr size_t kPromptLogprobBytes = 3 * sizeof(int32_t);
inline constexpr size_t kBiasBytes = sizeof(int32_t) + sizeof(float);
inline constexpr size_t kCountBytes = sizeof(uint32_t);

}  // namespace octavo
