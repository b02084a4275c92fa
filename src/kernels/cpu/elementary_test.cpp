// The elementary functions of every instruction set have the bits of their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/reference/arithmetic/elementary.h"
#include "kernels/testing/isa_scope.h"

namespace octavo::cpu {
namespace {

struct Function {
  const char* name;
  Elementary kind;
  std::function<float(float)> definition;
  float lowest = -std::numeric_limits<float>::infinity();
  float largest = std::numeric_limits<float>::infinity();
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"exp", Elementary::kExp, arithmetic::exp},
      {"exp2", Elementary::kExp2, arithmetic::exp2, -126, 0},
      {"tanh", Elementary::kTanh, arithmetic::tanh},
      {"sigmoid", Elementary::kSigmoid, arithmetic::sigmoid},
      {"softplus", Elementary::kSoftplus, arithmetic::softplus},
      {"silu", Elementary::kSilu, arithmetic::silu},
      {"gelu_tanh", Elementary::kGeluTanh, arithmetic::gelu_tanh},
      {"erf", Elementary::kErf, arithmetic::erf},
      {"gelu", Elementary::kGelu, arithmetic::gelu},
  };
  return all;
}

// Limits of the functions, and numbers at which an operation inside them is special.
std::vector<float> special_values() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values;
  for (const float magnitude : {0.0f,
                                Limits::denorm_min(),
                                1e-40f,
                                Limits::min(),
                                1e-20f,
                                0.3465736f,
                                0.5f,
                                0.625f,
                                0.927734375f,
                                1.0f,
                                1.5f,
                                7.0f,
                                8.5f,
                                9.0f,
                                17.3f,
                                43.65f,
                                44.15f,
                                87.3f,
                                87.33655f,
                                88.0f,
                                88.3f,
                                88.72284f,
                                103.9f,
                                126.0f,
                                1e4f,
                                1e20f,
                                Limits::max(),
                                Limits::infinity(),
                                Limits::quiet_NaN()}) {
    for (const float near : {std::nextafter(magnitude, 0.0f), magnitude,
                             std::nextafter(magnitude, Limits::infinity())}) {
      values.push_back(near);
      values.push_back(-near);
    }
  }
  return values;
}

// Any bits, and numbers of the size that activations have.
std::vector<float> random_values() {
  constexpr int kCount = 100000;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    values.push_back(normal(random) * 30);
    values.push_back(normal(random));
  }
  return values;
}

std::vector<float> inputs_of(const Function& function) {
  std::vector<float> all = special_values();
  const auto random = random_values();
  all.insert(all.end(), random.begin(), random.end());
  std::erase_if(all, [&](float x) {
    const bool everywhere = std::isinf(function.lowest);
    return !everywhere && !(x >= function.lowest && x <= function.largest);
  });
  return all;
}

class ElementaryFunctions : public IsaTest {};

TEST_P(ElementaryFunctions, HaveTheBitsOfTheirDefinition) {
  prepare_thread();
  for (const Function& function : functions()) {
    const auto x = inputs_of(function);
    std::vector<float> y(x.size());
    kernels().elementary(function.kind, x.data(), static_cast<int64_t>(x.size()), y.data());
    int different = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = function.definition(x[i]);
      const bool same = std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(y[i]) ||
                        (std::isnan(expected) && std::isnan(y[i]));
      if (same) continue;
      if (++different <= 3) {
        ADD_FAILURE() << function.name << " of " << std::hexfloat << x[i] << " is " << y[i]
                      << ", defined as " << expected;
      }
    }
    EXPECT_EQ(different, 0) << function.name;
  }
}

OCTAVO_FOR_EVERY_ISA(ElementaryFunctions);

TEST(ElementaryDefinitions, AreTheFunctionsTheyAreNamedAfter) {
  std::mt19937 random(8);
  std::normal_distribution<double> normal(0, 5);
  for (int i = 0; i < 20000; ++i) {
    const auto x = static_cast<float>(normal(random));
    const auto wide = static_cast<double>(x);
    const double power = std::exp(wide);
    const auto is = [&](float actual, double expected, double tolerance) {
      EXPECT_NEAR(static_cast<double>(actual), expected,
                  tolerance * std::max(1.0, std::abs(expected)))
          << x;
    };
    is(arithmetic::exp(x), power, 2e-7);
    is(arithmetic::exp2(-std::abs(x)), std::exp2(-std::abs(wide)), 2e-7);
    is(arithmetic::tanh(x), std::tanh(wide), 3e-7);
    is(arithmetic::sigmoid(x), 1 / (1 + 1 / power), 2e-7);
    is(arithmetic::softplus(x), std::log1p(power), 3e-7);
    is(arithmetic::silu(x), wide / (1 + 1 / power), 3e-7);
    const double inner = std::sqrt(2 / std::numbers::pi) * (wide + 0.044715 * wide * wide * wide);
    is(arithmetic::gelu_tanh(x), 0.5 * wide * (1 + std::tanh(inner)), 5e-7);
    is(arithmetic::erf(x), std::erf(wide), 2e-7);
    is(arithmetic::gelu(x), 0.5 * wide * (1 + std::erf(wide / std::numbers::sqrt2)), 5e-7);
  }
}

TEST(ElementaryDefinitions, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(arithmetic::exp(-infinity), 0);
  EXPECT_EQ(arithmetic::exp(0), 1);
  EXPECT_EQ(arithmetic::exp(infinity), arithmetic::exp(88.3f));
  EXPECT_EQ(arithmetic::exp(nan), arithmetic::exp(-87.3f));
  EXPECT_EQ(arithmetic::tanh(infinity), 1);
  EXPECT_EQ(arithmetic::tanh(-infinity), -1);
  EXPECT_EQ(arithmetic::sigmoid(infinity), 1);
  EXPECT_EQ(arithmetic::sigmoid(-infinity), 0);
  EXPECT_EQ(arithmetic::softplus(infinity), infinity);
  EXPECT_EQ(arithmetic::softplus(-infinity), 0);
  EXPECT_TRUE(std::isnan(arithmetic::softplus(nan)));
  EXPECT_TRUE(std::isnan(arithmetic::silu(nan)));
  EXPECT_EQ(arithmetic::erf(infinity), 1);
  EXPECT_EQ(arithmetic::erf(-infinity), -1);
  EXPECT_TRUE(std::isnan(arithmetic::gelu(nan)));
}

}  // namespace
}  // namespace octavo::cpu
