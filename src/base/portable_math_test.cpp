#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace octavo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kTrials = 200000;

// In units of 2^-53 of the exact number, at most a unit in the last place.
double error_of(double actual, long double exact) {
  if (exact == 0) return actual == 0 ? 0 : kInfinity;
  return static_cast<double>(std::abs((static_cast<long double>(actual) - exact) / exact)) * 0x1p53;
}

TEST(PortableMath, IsAccurate) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  double log = 0, exp = 0, pow = 0, sine = 0, cosine = 0;
  for (int i = 0; i < kTrials; ++i) {
    const double wide = std::ldexp(0.5 + part(random), static_cast<int>(random() % 2000) - 1000);
    const double near = 0.5 + 1.5 * part(random);
    for (const double x : {wide, near})
      log = std::max(log, error_of(portable_log(x), std::log(static_cast<long double>(x))));
    const double power = (part(random) - 0.5) * 1400;
    exp = std::max(exp, error_of(portable_exp(power), std::exp(static_cast<long double>(power))));
    const double y = part(random);
    pow =
        std::max(pow, error_of(portable_pow(1e6, y), std::pow(1e6L, static_cast<long double>(y))));
    // As rope's: the nearest float of any magnitude.
    const auto angle = static_cast<double>(static_cast<float>(std::exp(17 * part(random)) - 1));
    const SineCosine of = sine_cosine(i % 2 == 0 ? angle : -angle);
    const auto exact = static_cast<long double>(angle) * (i % 2 == 0 ? 1 : -1);
    sine = std::max(sine, error_of(of.sine, std::sin(exact)));
    cosine = std::max(cosine, error_of(of.cosine, std::cos(exact)));
  }
  EXPECT_LT(log, 4);
  EXPECT_LT(exp, 2);
  EXPECT_LT(pow, 20);
  EXPECT_LT(sine, 4);
  EXPECT_LT(cosine, 4);
}

TEST(PortableMath, ExactPoints) {
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_pow(10000, 0), 1);
  EXPECT_EQ(sine_cosine(0).sine, 0);
  EXPECT_EQ(sine_cosine(0).cosine, 1);
}

TEST(PortableMath, TheSigmoidTakesEveryNumber) {
  EXPECT_EQ(portable_sigmoid(0), 0.5);
  EXPECT_NEAR(portable_sigmoid(2), 1 / (1 + std::exp(-2.0)), 1e-15);
  for (const double large : {800.0, 1e10, 1e300, kInfinity}) {
    EXPECT_EQ(portable_sigmoid(large), 1);
    EXPECT_NEAR(portable_sigmoid(-large), 0, 1e-300);
  }
  EXPECT_TRUE(std::isnan(portable_sigmoid(std::nan(""))));
}

TEST(PortableMath, LogOfSpecialValues) {
  EXPECT_EQ(portable_log(0), -kInfinity);
  EXPECT_EQ(portable_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_TRUE(std::isnan(portable_log(std::nan(""))));
}

TEST(PortableMath, AnyFiniteAngleHasASine) {
  for (const double angle : {3e7, 1e9, 1e20, 3.4e38, -3.4e38}) {
    const SineCosine of = sine_cosine(bounded_angle(angle));
    EXPECT_NEAR(of.sine * of.sine + of.cosine * of.cosine, 1, 1e-15) << angle;
  }
  EXPECT_TRUE(std::isnan(sine_cosine(bounded_angle(kInfinity)).sine));
}

// These bits were computed on x86-64; every machine and compiler must give them.
TEST(PortableMath, HasTheSameBitsEverywhere) {
  EXPECT_EQ(portable_log(151936.25), 0x1.7dcc86225ffe9p+3);
  EXPECT_EQ(portable_exp(-12.34567), 0x1.23d360da16ebep-18);
  EXPECT_EQ(portable_pow(500000, 0.671875), 0x1.a5935bef683e7p+12);
  EXPECT_EQ(sine_cosine(98765.4296875).sine, 0x1.4650b32fc0cf3p-5);
  EXPECT_EQ(sine_cosine(98765.4296875).cosine, 0x1.ff97f90621ac1p-1);
}

}  // namespace
}  // namespace octavo
