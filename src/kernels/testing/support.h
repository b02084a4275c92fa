// support.h - random arrays and comparisons shared by the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/runtime/device_buffer.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

inline mx::array random_array(std::mt19937& random, const mx::Shape& shape,
                              mx::Dtype dtype = mx::float32) {
  std::normal_distribution<float> normal;
  size_t count = 1;
  for (auto dim : shape) count *= static_cast<size_t>(dim);
  std::vector<float> values(count);
  for (auto& value : values) value = normal(random);
  mx::array out = mx::astype(mx::array(values.begin(), shape, mx::float32), dtype);
  out.eval();
  return out;
}

inline std::vector<float> floats_of(const mx::array& array) {
  mx::array wide = mx::contiguous(mx::astype(array, mx::float32));
  wide.eval();
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

inline float largest_difference(const mx::array& a, const mx::array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const auto x = floats_of(a);
  const auto y = floats_of(b);
  float largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) return std::numeric_limits<float>::infinity();
    largest = std::max(largest, std::abs(x[i] - y[i]));
  }
  return largest;
}

// Relative to numbers above one.
inline float largest_error(const mx::array& expected, const mx::array& actual) {
  const auto x = floats_of(expected);
  const auto y = floats_of(actual);
  EXPECT_EQ(x.size(), y.size());
  float largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float error = std::abs(x[i] - y[i]) / std::max(1.0f, std::abs(x[i]));
    if (!(error <= largest)) largest = error;  // NaN counts as the largest
  }
  return largest;
}

// Within `tolerance` of the largest number, or of one.
inline void expect_close(const mx::array& expected, const mx::array& actual, float tolerance) {
  float largest = 1;
  for (float value : floats_of(expected)) largest = std::max(largest, std::abs(value));
  EXPECT_EQ(expected.dtype(), actual.dtype());
  EXPECT_LT(largest_difference(expected, actual), tolerance * largest);
}

inline std::vector<int32_t> ints_of(mx::array array) {
  array.eval();
  return {array.data<int32_t>(), array.data<int32_t>() + array.size()};
}

inline mx::array rows_of(const mx::array& x, int begin, int end) {
  mx::Shape first(x.ndim(), 0), last = x.shape();
  first[0] = begin;
  last[0] = end;
  mx::array rows = mx::contiguous(mx::slice(x, first, last));
  rows.eval();
  return rows;
}

// Evaluates `make`, which must launch `kernel` ("norm.reference"), so that a comparison really
// covers two paths.
template <typename Make>
auto launching(const std::string& kernel, const Make& make) {
  const int64_t before = launch_counts()[kernel];
  auto made = make();
  if constexpr (std::is_same_v<decltype(made), mx::array>) made.eval();
  EXPECT_GT(launch_counts()[kernel], before) << kernel;
  return made;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace octavo
