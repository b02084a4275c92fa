// linear_support.h - helpers for the tests of products on simulated Metal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/testing/weights.h"
#include "metal_sim/simulator.h"

namespace octavo::metal_linear {

using metal_sim::SimulatedMetal;

// The result of `make` on simulated Metal; checks the number of launches of each kernel.
template <typename Make>
mx::array on_metal(const std::map<std::string, uint64_t>& launches, Make&& make) {
  const SimulatedMetal metal;
  mx::array result = make();
  result.eval();
  auto counts = metal.counts();
  for (const auto& [kernel, count] : launches) EXPECT_EQ(counts[kernel].launches, count) << kernel;
  return result;
}

// The kernel of products with this weight.
inline std::string kernel_of(const Weight& weight, DType x, int rows) {
  if (weight.layout.bits == 0 || x == DType::kFloat32) return "linear_rows";
  return rows <= 8 ? "integer_vector" : "integer_matrix";
}

// The same for `launches` products of any kernel.
template <typename Make>
mx::array products_on_metal(uint64_t launches, Make&& make) {
  const SimulatedMetal metal;
  mx::array result = make();
  result.eval();
  auto counts = metal.counts();
  uint64_t products = 0;
  for (const char* kernel : {"linear_rows", "integer_vector", "integer_matrix"})
    products += counts[kernel].launches;
  EXPECT_EQ(products, launches);
  return result;
}

template <typename Make>
mx::array on_metal(Make&& make) {
  return products_on_metal(1, make);
}

// Relative to the largest output: float32 differs only by the order of sums, float16 and bfloat16
// also by the rounding of rows and of the result.
inline float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 1e-5f : dtype == DType::kFloat16 ? 2e-3f : 2e-2f;
}

// `compute` must return the same result for a row alone and in batches of 2 to all rows, taken from
// the front and from the back, so that the last row appears in every position.
template <typename Compute>
void expect_same_bits_in_every_batch(const mx::array& x, Compute&& compute) {
  const int most = x.shape(0);
  std::vector<std::vector<float>> alone;
  for (int row = 0; row < most; ++row)
    alone.push_back(floats_of(compute(rows_of(x, row, row + 1))));
  for (int count = 2; count <= most; ++count) {
    for (int begin : {0, most - count}) {
      const auto batch = floats_of(compute(rows_of(x, begin, begin + count)));
      const size_t width = alone[0].size();
      for (int row = 0; row < count; ++row) {
        const auto at =
            batch.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(row) * width);
        EXPECT_TRUE(same_bits(alone[static_cast<size_t>(begin + row)],
                              {at, at + static_cast<std::ptrdiff_t>(width)}))
            << "row " << row << " of " << count;
      }
      if (count == most) break;
    }
  }
}

}  // namespace octavo::metal_linear
