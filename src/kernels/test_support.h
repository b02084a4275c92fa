// test_support.h - random arrays and comparisons shared by the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/device_buffer.h"
#include "kernels/mlx.h"

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

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace octavo
