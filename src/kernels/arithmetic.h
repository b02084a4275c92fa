// arithmetic.h - the name of the arithmetic in use: what determines the bits of a computation
// besides its inputs and options (docs/arithmetic.md). Shows no MLX.
#pragma once

#include <string>

namespace octavo {

// Raised with every change that changes a result of the CPU kernels, on any instruction set.
inline constexpr int kArithmeticVersion = 1;

// "v1" on every processor; a GPU's architecture on Metal, whose kernels sum in their own order, with
// what check_kernels() turned off.
std::string arithmetic_name();

}  // namespace octavo
