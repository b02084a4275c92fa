// activation_kind.h - names of the gated activations. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Each computes one number from a gate and an up number.
enum class Activation : uint8_t {
  kSilu,         // silu(gate) * up
  kGeluTanh,     // gelu(gate) * up, tanh approximation
  kRelu,         // relu(gate) * up: the square of relu if both are one product
  kBoundedSilu,  // gpt-oss: gate * sigmoid(1.702 gate) * (up + 1), gate <= 7 and |up| <= 7
};

}  // namespace octavo
