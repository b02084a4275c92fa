// Implementations used for comparison must compute the same result.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/half.h"
#include "bench/free_product_tiles.h"
#include "bench/onednn.h"
#include "kernels/cpu/isa.h"

namespace octavo::bench {
namespace {

constexpr int kRows = 18, kCols = 128, kOutputs = 64;

struct Problem {
  std::vector<uint16_t> x, weight;
  std::vector<float> expected;  // [kRows, kOutputs]
};

// Small integers: exact in bf16, as are their sums in any order.
Problem make_problem() {
  Problem p;
  for (int i = 0; i < kRows * kCols; ++i) {
    p.x.push_back(float_to_bf16(static_cast<float>(i * 7 % 5 - 2)));
  }
  for (int i = 0; i < kOutputs * kCols; ++i) {
    p.weight.push_back(float_to_bf16(static_cast<float>(i * 11 % 7 - 3)));
  }
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kOutputs; ++n) {
      float sum = 0;
      for (int k = 0; k < kCols; ++k) {
        sum += bf16_to_float(p.x[static_cast<size_t>(m * kCols + k)]) *
               bf16_to_float(p.weight[static_cast<size_t>(n * kCols + k)]);
      }
      p.expected.push_back(bf16_to_float(float_to_bf16(sum)));
    }
  }
  return p;
}

std::vector<float> floats_of(std::span<const uint16_t> values) {
  std::vector<float> out;
  for (uint16_t value : values) out.push_back(bf16_to_float(value));
  return out;
}

bool has_tiles() { return cpu::available_isas().back() == cpu::Isa::kAmx; }

TEST(FreeProduct, WholeAndSplitByDepthGiveTheProduct) {
  if (!has_tiles()) GTEST_SKIP() << "no AMX tiles";
  const Problem p = make_problem();
  std::vector<uint16_t> packed(p.weight.size()), out(kRows * kOutputs), tiles(32 * kCols);
  pack_free(p.weight.data(), kOutputs, kCols, packed.data());
  const FreeJob job{.x = p.x.data(),
                    .tiles = tiles.data(),
                    .weight = packed.data(),
                    .rows = kRows,
                    .row_tiles = 2,
                    .cols = kCols,
                    .outputs = kOutputs,
                    .out = out.data()};
  const int depth = kCols / kTileDepth, outputs = kOutputs / kTileRows;
  pack_rows(job, 0, 2);
  multiply_box(job, {0, 2, 0, outputs, 0, depth}, nullptr);
  EXPECT_EQ(floats_of(out), p.expected);

  std::fill(out.begin(), out.end(), uint16_t{0});
  std::vector<float> low(32 * kOutputs), high(32 * kOutputs);
  multiply_box(job, {0, 1, 0, outputs, 0, depth / 2}, low.data());
  multiply_box(job, {1, 2, 0, outputs, 0, depth / 2}, low.data());
  multiply_box(job, {0, 2, 0, outputs, depth / 2, depth}, high.data());
  add_sums(job, low.data(), high.data(), 0, kRows);
  EXPECT_EQ(floats_of(out), p.expected);
}

TEST(OneDnn, GivesTheProduct) {
  const Problem p = make_problem();
  const auto product =
      OneDnnProduct::make({.rows = kRows, .cols = kCols, .outputs = kOutputs}, 2, p.x, p.weight);
  if (!product) GTEST_SKIP() << "oneDNN is not built in or does not support bf16 on this machine";
  product->run(3);
  EXPECT_EQ(floats_of(product->output()), p.expected);
}

}  // namespace
}  // namespace octavo::bench
