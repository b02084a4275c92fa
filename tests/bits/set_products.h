// set_products.h - for tests: products of raw rows on one instruction set, and comparison of their bits.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/half.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear.h"
#include "kernels/reference/arithmetic/flushed.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {

// x: [rows, cols] of `dtype`. Returns the product as bytes of `out_dtype`.
inline std::vector<std::byte> product_on(cpu::Isa isa, std::span<const std::byte> x, DType dtype,
                                         const PackedView& weight, DType out_dtype) {
  const IsaScope scope(isa);
  const auto row_bytes = static_cast<size_t>(weight.layout.cols) * size_of(dtype);
  const auto rows = static_cast<int64_t>(x.size() / row_bytes);
  std::vector<std::byte> out(static_cast<size_t>(rows * weight.layout.rows) * size_of(out_dtype));
  cpu::LinearArgs args;
  args.x = {.x = x.data(), .dtype = dtype, .rows = rows, .cols = weight.layout.cols};
  args.parts[0].weight = weight;
  args.part_count = 1;
  args.out = out.data();
  args.out_dtype = out_dtype;
  args.out_stride = weight.layout.rows;
  cpu::linear(args);
  return out;
}

inline std::vector<std::byte> bytes_as(DType dtype, const std::vector<float>& values) {
  std::vector<uint16_t> narrow;
  for (const float value : values)
    narrow.push_back(dtype == DType::kFloat16 ? float_to_half(value) : arithmetic::to_bf16(value));
  const auto bytes = dtype == DType::kFloat32 ? std::as_bytes(std::span(values))
                                              : std::as_bytes(std::span(narrow));
  return {bytes.begin(), bytes.end()};
}

inline float number_at(std::span<const std::byte> bytes, DType dtype, size_t index) {
  if (dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * index, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + 2 * index, sizeof(bits));
  return dtype == DType::kFloat16 ? half_to_float(bits) : bf16_to_float(bits);
}

// The first number whose bits differ, or -1. A NaN equals any NaN, because sets differ in its bits.
inline int64_t first_difference(std::span<const std::byte> a, std::span<const std::byte> b,
                                DType dtype) {
  const size_t size = size_of(dtype);
  if (a.size() != b.size()) return 0;
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return -1;
  for (size_t i = 0; i < a.size() / size; ++i) {
    if (std::memcmp(a.data() + i * size, b.data() + i * size, size) == 0) continue;
    if (!std::isnan(number_at(a, dtype, i)) || !std::isnan(number_at(b, dtype, i)))
      return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace octavo
