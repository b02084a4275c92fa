// integer_reference.h - for tests: products of bfloat16 rows with quantised weights, one number at a
// time. Every instruction set must give these bits. No MLX.
//
// Per row and unit of 64 inputs, xs = 2^(E - 10), where E is the exponent of the largest |x| of the
// unit and at least -100, and q = x / xs, rounded to the nearest integer, ties to even. Then per
// group of inputs, in ascending order (a group of 128 counts as two of 64):
//
//   xsum = (sum of q) * xs
//   s    = (sum of (code + offset) * q) * xs
//   out  = fma(s, scale, out)
//   rest = fma(fma(-offset, scale, bias), xsum, rest)
//
// and the result is out + rest, where offset is 2^bits (-128 for 8 bits). Without a bias, offset is minus
// the zero point, there is no rest, and the result is out. With a table (code_table.h), the table's whole
// number takes the place of code + offset, and scale includes the table's factor.
//
// A unit with an infinity or a NaN has xs = NaN. Denormal inputs and results of every operation count
// as zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "kernels/reference/arithmetic/flushed.h"
#include "kernels/weights/format_codes.h"

namespace octavo::integer_reference {

struct XUnit {
  float scale;                // xs
  int32_t q[kUnitCols] = {};  // inputs past the row's end are 0
};

// x: up to 64 bfloat16 numbers.
inline XUnit unit_of(std::span<const uint16_t> x) {
  float largest = 0;
  for (const uint16_t bits : x) {
    const float value = std::abs(bf16_to_float(bits));
    if (!std::isfinite(value)) return {.scale = std::numeric_limits<float>::quiet_NaN()};
    largest = std::max(largest, value);
  }
  const int exponent = largest > 0 ? std::max(std::ilogb(largest), -100) : -100;
  XUnit unit{.scale = std::ldexp(1.0f, exponent - 10)};
  for (size_t i = 0; i < x.size(); ++i)
    unit.q[i] =
        static_cast<int32_t>(std::nearbyint(std::ldexp(bf16_to_float(x[i]), 10 - exponent)));
  return unit;
}

inline float number_at(const std::byte* numbers, DType dtype, int64_t index) {
  if (dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, numbers + index * 4, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, numbers + index * 2, sizeof(bits));
  return dtype == DType::kFloat16 ? half_to_float(bits) : bf16_to_float(bits);
}

struct Group {
  float scale;
  float bias = 0;
};

template <typename Block>
Group super_group(const Block& block, int group) {
  const ScaleAndMin small = scale_and_min(block.scales, group);
  return {half_to_float(block.scale) * static_cast<float>(small.scale),
          -(half_to_float(block.min) * static_cast<float>(small.min))};
}

inline Group group_of(const WeightView& w, int64_t row, int64_t group) {
  const int64_t at = w.group_size > 0 ? row * (w.cols / w.group_size) + group : 0;
  switch (w.format) {
    case WeightFormat::kAffine:
      return {number_at(w.scales, w.dtype, at), number_at(w.biases, w.dtype, at)};
    case WeightFormat::kMxfp4:  // codes stand for twice the number
      return {std::ldexp(0.5f, std::to_integer<int>(w.scales[at]) - 127)};
    case WeightFormat::kQ4_0:
      return {half_to_float(source_blocks<BlockQ4_0>(w, row)[group].scale)};
    case WeightFormat::kQ5_0:
      return {half_to_float(source_blocks<BlockQ5_0>(w, row)[group].scale)};
    case WeightFormat::kQ8_0:
      return {half_to_float(source_blocks<BlockQ8_0>(w, row)[group].scale)};
    case WeightFormat::kQ4_1: {
      const BlockQ4_1& block = source_blocks<BlockQ4_1>(w, row)[group];
      return {half_to_float(block.scale), half_to_float(block.min)};
    }
    case WeightFormat::kQ5_1: {
      const BlockQ5_1& block = source_blocks<BlockQ5_1>(w, row)[group];
      return {half_to_float(block.scale), half_to_float(block.min)};
    }
    case WeightFormat::kQ4_K:
      return super_group(source_blocks<BlockQ4_K>(w, row)[group / 8], static_cast<int>(group % 8));
    case WeightFormat::kQ5_K:
      return super_group(source_blocks<BlockQ5_K>(w, row)[group / 8], static_cast<int>(group % 8));
    case WeightFormat::kQ2_K: {
      const BlockQ2_K& block = source_blocks<BlockQ2_K>(w, row)[group / 16];
      const int both = block.scales[group % 16];
      return {half_to_float(block.scale) * static_cast<float>(both & 15),
              -(half_to_float(block.min) * static_cast<float>(both >> 4))};
    }
    case WeightFormat::kMxfp4Gguf:
      return {half_power(source_blocks<BlockMxfp4>(w, row)[group].scale)};
    case WeightFormat::kIQ4_NL:
      return {half_to_float(source_blocks<BlockIQ4_NL>(w, row)[group].scale)};
    case WeightFormat::kDense:
      OCTAVO_CHECK(false);
      return {};
    default: {  // a float16 scale per 256 inputs and a small whole number per group
      const int64_t groups = kSuperBlock / codes_of(w).group_size;
      const SignedScales scales = signed_scales(w, row, group / groups);
      return {half_to_float(scales.scale) * static_cast<float>(scales.of_group[group % groups])};
    }
  }
}

// A row of the matrix: small integers, and per group its scale and bias.
struct CodeRow {
  std::vector<int> codes;
  std::vector<Group> groups;
  int group_size;
  int offset;
  bool has_bias;
};

inline CodeRow code_row(const WeightView& w, int64_t row) {
  const FormatCodes format = codes_of(w);
  const bool has_bias =
      format.scales == ScaleKind::kSuper || format.scales == ScaleKind::kSuperNibbles ||
      format.scales == ScaleKind::kPairF32 || format.scales == ScaleKind::kPairF16 ||
      format.scales == ScaleKind::kPairBF16;
  CodeRow out{.codes = {},
              .groups = {},
              .group_size = format.group_size,
              .offset = !has_bias          ? -format.zero
                        : format.bits == 8 ? -128
                                           : 1 << format.bits,
              .has_bias = has_bias};
  std::vector<uint8_t> stored(static_cast<size_t>(w.cols));
  read_codes(w, row, stored.data());
  out.codes.assign(stored.begin(), stored.end());
  const CodeNumbers* table = numbers_of(format.table);
  if (table != nullptr) {
    for (int& code : out.codes) code = static_cast<int>(table->number[code]);
  }
  for (int64_t g = 0; g < w.cols / format.group_size; ++g)
    out.groups.push_back(group_of(w, row, g));
  if (table != nullptr) {
    for (Group& group : out.groups) group.scale *= table->factor;
  }
  return out;
}

// One output: a row of the matrix and the units of a row of x.
inline float dot(const CodeRow& row, const XUnit* units) {
  const int step = std::min(row.group_size, kUnitCols);
  const auto cols = static_cast<int>(row.codes.size());
  float out = 0, rest = 0;
  for (int k = 0; k < cols; k += step) {
    const XUnit& unit = units[k / kUnitCols];
    const int32_t* q = unit.q + k % kUnitCols;
    const int* codes = row.codes.data() + k;
    int64_t sum = 0, x_sum = 0;  // 64 bits: an overflow of 32 would be found
    for (int i = 0; i < step; ++i) {
      sum += int64_t{codes[i] + row.offset} * q[i];
      x_sum += q[i];
    }
    const Group& group = row.groups[static_cast<size_t>(k / row.group_size)];
    const float s = arithmetic::mul(static_cast<float>(sum), unit.scale);
    out = arithmetic::fma(s, group.scale, out);
    if (row.has_bias) {
      const float bias = arithmetic::fma(-static_cast<float>(row.offset), group.scale, group.bias);
      rest = arithmetic::fma(bias, arithmetic::mul(static_cast<float>(x_sum), unit.scale), rest);
    }
  }
  return row.has_bias ? arithmetic::add(out, rest) : out;
}

// x: [rows, w.cols] bfloat16. Returns [rows, w.rows].
inline std::vector<float> product(const WeightView& w, std::span<const uint16_t> x) {
  const auto cols = static_cast<size_t>(w.cols);
  const auto outputs = static_cast<size_t>(w.rows);
  const size_t rows = x.size() / cols;
  const size_t units_per_row = (cols + kUnitCols - 1) / kUnitCols;
  std::vector<XUnit> units;
  for (size_t m = 0; m < rows; ++m) {
    for (size_t k = 0; k < cols; k += kUnitCols)
      units.push_back(unit_of(x.subspan(m * cols + k, std::min<size_t>(kUnitCols, cols - k))));
  }
  std::vector<float> out(rows * outputs);
  for (size_t n = 0; n < outputs; ++n) {
    const CodeRow row = code_row(w, static_cast<int64_t>(n));
    for (size_t m = 0; m < rows; ++m)
      out[m * outputs + n] = dot(row, units.data() + m * units_per_row);
  }
  return out;
}

}  // namespace octavo::integer_reference
