// flushed.h - float operations in which a denormal input or result counts as zero with its sign. The
// definition of Octavo's arithmetic (docs/arithmetic.md) is written in them. Their bits do not depend
// on the thread's flush-to-zero setting. No MLX.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/half.h"

namespace octavo::arithmetic {

// Zero with the sign of `value` if it is denormal.
inline float flush(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}

// Whether a result is denormal is decided after rounding it to 24 bits, as x86 does. A denormal that
// rounds up to the smallest normal number must be told from a result that is this number, so the
// operation is repeated with a larger exponent: `scaled` returns 2^64 times the result.
template <typename Scaled>
float flush_rounded(float result, Scaled scaled) {
  if (std::abs(result) != FLT_MIN) return flush(result);
  return std::abs(scaled()) < std::ldexp(FLT_MIN, 64) ? std::copysign(0.0f, result) : result;
}

inline float add(float a, float b) { return flush(flush(a) + flush(b)); }
inline float sub(float a, float b) { return flush(flush(a) - flush(b)); }

inline float mul(float a, float b) {
  a = flush(a);
  b = flush(b);
  if (std::abs(a) > std::abs(b)) std::swap(a, b);  // the smaller one can be scaled
  return flush_rounded(a * b, [&] { return std::ldexp(a, 64) * b; });
}

inline float div(float a, float b) {
  a = flush(a);
  b = flush(b);
  return flush_rounded(a / b, [&] { return std::ldexp(a, 64) / b; });
}

// a * b + c, rounded once.
inline float fma(float a, float b, float c) {
  a = flush(a);
  b = flush(b);
  c = flush(c);
  if (std::abs(a) > std::abs(b)) std::swap(a, b);
  return flush_rounded(std::fma(a, b, c),
                       [&] { return std::fma(std::ldexp(a, 64), b, std::ldexp(c, 64)); });
}

// bfloat16, rounded to nearest, ties to even.
inline uint16_t to_bf16(float value) { return float_to_bf16(flush(value)); }
inline float from_bf16(uint16_t value) { return flush(bf16_to_float(value)); }

}  // namespace octavo::arithmetic
