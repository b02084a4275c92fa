// line_scalar.h - a line of codes and sums of products in plain C++, whose
// functions are not inlined: they would take minutes to compile. Included by code_lines.h only. No MLX.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

#define OCTAVO_APART static __attribute__((noinline))

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

struct Line {
  uint8_t byte[64];
};

OCTAVO_APART Line line_load(const uint8_t* p) {
  Line v;
  std::memcpy(v.byte, p, sizeof(v.byte));
  return v;
}
OCTAVO_APART void line_store(uint8_t* p, const Line& v) { std::memcpy(p, v.byte, sizeof(v.byte)); }
struct Sums {
  int32_t of[16];
};
inline constexpr int kLargestFactor = 255;  // of a line that dot() multiplies

OCTAVO_APART Line line_or(Line a, const Line& b) {
  for (int i = 0; i < 64; ++i) a.byte[i] |= b.byte[i];
  return a;
}
// Bits [kShift, ...) of each byte, masked.
template <int kShift, int kMask>
OCTAVO_APART Line line_field(Line v) {
  for (uint8_t& byte : v.byte) byte = static_cast<uint8_t>((byte >> kShift) & kMask);
  return v;
}
// Field kField of two bits of each byte, at bits 4 and 5.
template <int kField>
OCTAVO_APART Line line_high_field(Line v) {
  for (uint8_t& byte : v.byte) byte = static_cast<uint8_t>(((byte >> (2 * kField)) & 3) << 4);
  return v;
}
// Adds kValue to the bytes whose bit is set in the 64 bits at `bits`.
template <int kValue>
OCTAVO_APART Line line_add_bits(Line v, const uint8_t* bits) {
  for (int i = 0; i < 64; ++i)
    v.byte[i] = static_cast<uint8_t>(v.byte[i] + ((bits[i / 8] >> (i % 8)) & 1) * kValue);
  return v;
}
OCTAVO_APART Line line_look_up(Line v, const uint8_t* table) {
  for (uint8_t& byte : v.byte) byte = table[byte];
  return v;
}

OCTAVO_APART Sums sums_of(int32_t each) {
  Sums sums;
  for (int32_t& of : sums.of) of = each;
  return sums;
}
// sums[n] += the four products of row n's codes and the four signed bytes at `digits`.
OCTAVO_APART Sums dot(Sums sums, const Line& codes, const int8_t* digits) {
  for (int n = 0; n < 16; ++n) {
    for (int k = 0; k < 4; ++k) sums.of[n] += codes.byte[4 * n + k] * digits[k];
  }
  return sums;
}
// 16 * high + low
OCTAVO_APART Sums joined(const Sums& high, Sums low) {
  for (int n = 0; n < 16; ++n) low.of[n] += 16 * high.of[n];
  return low;
}
OCTAVO_APART Vec to_floats(const Sums& sums) {
  alignas(64) float numbers[16];
  for (int n = 0; n < 16; ++n) numbers[n] = static_cast<float>(sums.of[n]);
  return load(numbers);
}
OCTAVO_APART void fetch_line(const uint8_t*) {}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#undef OCTAVO_APART
