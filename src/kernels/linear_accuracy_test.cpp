// Compares every product with an fp64 one of the same numbers, on each instruction set. The bounds
// are relative to sum |x_k w_k|, the scale of a sum's rounding error. Products of bfloat16 rows with
// quantised weights must also be nearer than those with weights rounded to bfloat16.
#include <algorithm>
#include <cmath>

#include "base/half.h"
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

// Errors relative to the scale of each sum.
struct Errors {
  double largest = 0;
  double mean_square = 0;
};

template <typename Number>
Errors errors_of(const Exact& exact, const std::vector<Number>& actual) {
  Errors errors;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - exact.product[i]) / exact.scale[i];
    errors.largest = std::max(errors.largest, error);
    errors.mean_square += error * error / static_cast<double>(actual.size());
  }
  return errors;
}

std::vector<float> rounded_to_bf16(std::vector<float> numbers) {
  for (float& number : numbers) number = bf16_to_float(float_to_bf16(number));
  return numbers;
}

class LinearAccuracy : public IsaTest {};

TEST_P(LinearAccuracy, AgainstDoubles) {
  // Sums in float32: 768 roundings of at most 2^-24 each, far less on average.
  constexpr double kSum = 1e-6;
  // With quantised weights, 64 inputs of a bfloat16 row share a step, 2^-10 of the largest power of
  // two among them. Numbers below an eighth of that power are rounded to it: a fifth of normally
  // distributed ones, with errors of both signs. The bound is about four times the largest error of
  // such rows, and an eighth of the bound for weights rounded to bfloat16.
  constexpr double kRoundedRows = 1.0 / 4096;
  std::mt19937 random(21);
  for (const Weight& weight : every_format(random, kOutputs, kInputs)) {
    const auto w = floats_of(dequantize(weight));
    for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
      SCOPED_TRACE(weight.describe());
      const mx::array x = random_array(random, {kTokens, kInputs}, dtype);
      LinearOptions options;
      options.out_dtype = mx::float32;
      const Exact exact = exact_product(floats_of(x), w);
      const Errors errors = errors_of(exact, floats_of(linear(x, weight, options)));
      const bool is_integer = dtype == mx::bfloat16 && weight.layout.bits > 0;
      EXPECT_LT(errors.largest, is_integer ? kRoundedRows : kSum);
      // bfloat16 holds every mxfp4 number.
      if (!is_integer || weight.layout.table == CodeTable::kE2M1) continue;
      const Exact decoded = exact_product(floats_of(x), rounded_to_bf16(w));
      EXPECT_LT(errors.mean_square, errors_of(exact, decoded.product).mean_square);
    }
  }
}

OCTAVO_FOR_EVERY_ISA(LinearAccuracy);

}  // namespace
}  // namespace octavo
