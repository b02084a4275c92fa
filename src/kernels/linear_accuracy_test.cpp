// Compares every product with an fp64 one of the same numbers, on each instruction set. The bounds
// are relative to sum |x_k w_k|, the scale of a sum's rounding error.
#include <cmath>

#include "kernels/cpu/isa.h"
#include "kernels/linear.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/support.h"
#include "kernels/testing/weights.h"

namespace octavo {
namespace {

constexpr int kOutputs = 37;
constexpr int kInputs = 768;
constexpr int kTokens = 5;

struct Exact {
  std::vector<double> product;
  std::vector<double> scale;  // sum |x_k w_k|
};

Exact exact_product(const std::vector<float>& x, const std::vector<float>& w) {
  Exact exact;
  for (size_t m = 0; m < kTokens; ++m) {
    for (size_t n = 0; n < kOutputs; ++n) {
      double sum = 0, scale = 0;
      for (size_t k = 0; k < kInputs; ++k) {
        const double term = static_cast<double>(x[m * kInputs + k]) * w[n * kInputs + k];
        sum += term;
        scale += std::abs(term);
      }
      exact.product.push_back(sum);
      exact.scale.push_back(scale);
    }
  }
  return exact;
}

double largest_relative_error(const Exact& exact, const std::vector<float>& actual) {
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i)
    largest = std::max(largest, std::abs(actual[i] - exact.product[i]) / exact.scale[i]);
  return largest;
}

class LinearAccuracy : public IsaTest {};

TEST_P(LinearAccuracy, AgainstDoubles) {
  // Sums in float32: 768 roundings of at most 2^-24 each, far less on average.
  constexpr double kSum = 1e-6;
  // A weight rounded to bfloat16 is off by at most 2^-9 of itself.
  constexpr double kRoundedWeight = 1.0 / 512;
  const bool has_bf16 = GetParam() >= cpu::Isa::kAvx512Bf16;
  std::mt19937 random(21);
  for (const Weight& weight : every_format(random, kOutputs, kInputs)) {
    const auto w = floats_of(dequantize(weight));
    for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
      SCOPED_TRACE(weight.describe());
      const mx::array x = random_array(random, {kTokens, kInputs}, dtype);
      LinearOptions options;
      options.out_dtype = mx::float32;
      const auto actual = floats_of(linear(x, weight, options));
      const bool rounded = has_bf16 && dtype == mx::bfloat16 && weight.layout.bits > 0;
      EXPECT_LT(largest_relative_error(exact_product(floats_of(x), w), actual),
                rounded ? kRoundedWeight : kSum);
    }
  }
}

OCTAVO_FOR_EVERY_ISA(LinearAccuracy);

}  // namespace
}  // namespace octavo
