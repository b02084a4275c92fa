// activation_kind.h - names of the activations. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Each computes one number from a gate and an up number; all but kBoundedSilu also without an up number,
// as if it were 1.
enum class Activation : uint8_t {
  kSilu,         // silu(gate) * up
  kGelu,         // gelu(gate) * up, by the error function
  kGeluTanh,     // gelu(gate) * up, tanh approximation
  kRelu,         // relu(gate) * up: the square of relu if both are one product
  kBoundedSilu,  // gpt-oss: gate * sigmoid(1.702 gate) * (up + 1), gate <= 7 and |up| <= 7
};

}  // namespace octavo
