// code_table.h - the numbers that the codes of some formats stand for. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

enum class CodeTable : uint8_t {
  kNone,     // a code stands for code - zero
  kE2M1,     // twice the numbers of E2M1: sign, two exponent bits, one mantissa bit
  kIQ4,      // GGUF's IQ4_NL and IQ4_XS
  kIQ3_S,    // an index of 3 bits, then the sign
  kIQ3_XXS,  // the same
  kIQ2,      // an index of 2 bits, then the sign; codes of 3 bits
};

inline constexpr int kTableCodes = 16;  // codes of 3 bits have each number twice
inline constexpr int kLargestTableByte = 254;
inline constexpr int kLargestTableByte3 = 127;  // of codes of 3 bits

// A number of a weight is scale * factor * number[code].
struct CodeNumbers {
  float number[kTableCodes];  // whole; floats, because E2M1 has a negative zero
  float factor;
  int zero;                               // minus the smallest number
  alignas(16) uint8_t byte[kTableCodes];  // number + zero, for integer products
};

// nullptr: none. Not inline: files compiled for an instruction set must not define shared functions.
const CodeNumbers* numbers_of(CodeTable table);

}  // namespace octavo
