// Random products with quantised weights have the bits of kernels/testing/integer_reference.h on every
// instruction set of this machine.
#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "base/half.h"
#include "base/testing/slow_tests.h"
#include "kernels/cpu/isa.h"
#include "kernels/testing/integer_reference.h"
#include "kernels/testing/quantised_formats.h"
#include "kernels/testing/weight_source.h"
#include "kernels/weights/weight.h"
#include "set_products.h"

namespace octavo {
namespace {

enum class RowKind { kNormal, kManyExponents, kOutliers, kSparse, kTiny, kZero, kLargest, kCount };

float number_of_kind(std::mt19937& random, RowKind kind) {
  constexpr float kLargestSignificand = 1.9921875f;
  std::normal_distribution<float> normal;
  const float number = normal(random);
  const auto choice = static_cast<int>(random() % 64);
  switch (kind) {
    case RowKind::kManyExponents:  // exact as integers, rounded, ties, or below half of a step
      return std::ldexp(number, -choice / 4);
    case RowKind::kOutliers:
      return choice == 0 ? std::ldexp(number, 10) : number;
    case RowKind::kSparse:
      return choice < 8 ? number : choice < 32 ? 0.0f : -0.0f;
    case RowKind::kTiny:  // denormals, and numbers above and below the smallest step
      if (choice >= 32) return std::ldexp(number, -56 - choice);
      // By its bits: this thread may flush denormals to zero.
      return std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x807fffffu);
    case RowKind::kZero:
      return 0;
    case RowKind::kLargest:
      return choice < 48 ? kLargestSignificand : -kLargestSignificand;
    default:
      return number;
  }
}

// Rows of mixed kinds, each times a power of two.
std::vector<uint16_t> random_rows(std::mt19937& random, int64_t rows, int64_t cols) {
  std::vector<uint16_t> out;
  for (int64_t row = 0; row < rows; ++row) {
    const auto kind = static_cast<RowKind>(random() % static_cast<unsigned>(RowKind::kCount));
    const int power = kind == RowKind::kTiny ? 0 : static_cast<int>(random() % 41) - 20;
    for (int64_t k = 0; k < cols; ++k) {
      const float number = number_of_kind(random, kind);
      out.push_back(float_to_bf16(power == 0 ? number : std::ldexp(number, power)));
    }
  }
  return out;
}

// A matrix of `format` with 1 to 80 outputs and up to 640 inputs (1,024 in super-blocks).
WeightSource random_matrix(std::mt19937& random, WeightView format) {
  const int64_t most = format.cols == 256 ? 4 : 640 / format.cols;
  format.cols *= 1 + static_cast<int64_t>(random()) % most;
  format.rows = 1 + static_cast<int64_t>(random() % 80);
  WeightSource source = random_source(random, format);
  const auto choice = random() % 16;
  if (choice < 2) fill_codes(source, choice == 0);
  return source;
}

int64_t random_row_count(std::mt19937& random) {
  const unsigned most = random() % 2 == 0 ? 8 : 70;
  return 1 + static_cast<int64_t>(random() % most);
}

// Every format in turn.
TEST(BitsAcrossSets, RandomProductsEqualTheReference) {
  const int cases = slow_tests() ? 10'000 : 300;
  const std::vector<WeightView> formats = quantised_formats();
  ASSERT_EQ(formats.size(), 73u);
  std::mt19937 random(19);
  int compared = 0;
  for (int i = 0; i < cases; ++i) {
    const WeightSource source =
        random_matrix(random, formats[static_cast<size_t>(i) % formats.size()]);
    const Weight weight = make_weight(source.view);
    const auto x = random_rows(random, random_row_count(random), source.view.cols);
    const DType out_dtype = random() % 4 == 0 ? DType::kBFloat16 : DType::kFloat32;
    const auto expected = bytes_as(out_dtype, integer_reference::product(source.view, x));
    for (const cpu::Isa isa : cpu::available_isas()) {
      ++compared;
      const auto actual =
          product_on(isa, std::as_bytes(std::span(x)), DType::kBFloat16, weight.view(), out_dtype);
      ASSERT_EQ(first_difference(actual, expected, out_dtype), -1)
          << "case " << i << " on " << cpu::name_of(isa) << ": " << weight.describe() << ", ["
          << source.view.rows << ", " << source.view.cols << "], "
          << x.size() / static_cast<size_t>(source.view.cols) << " rows";
    }
  }
  std::printf("%d products, each on %zu instruction sets: %d comparisons, no bit differs\n", cases,
              cpu::available_isas().size(), compared);
}

}  // namespace
}  // namespace octavo
