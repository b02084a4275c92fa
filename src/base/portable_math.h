// portable_math.h - log, exp, pow, sine and cosine in double precision: additions, multiplications
// and divisions in a fixed order, so the bits are the same on every machine (the C library's are
// not). They are the definition of these functions in docs/arithmetic.md. Each is within a few units
// in the last place, so a result rounded to float32 is the nearest one, but for a few in a billion.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>

namespace octavo {

// c[0] + c[1] x + c[2] x^2 + ..., from the last term on.
template <size_t N>
[[gnu::always_inline]] inline double polynomial(const std::array<double, N>& c, double x) {
  double sum = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// 1/first!, then every step-th reciprocal factorial after it, with alternating signs if asked.
template <size_t N>
constexpr std::array<double, N> reciprocal_factorials(int first, int step, bool alternating) {
  std::array<double, N> out = {};
  for (size_t i = 0; i < N; ++i) {
    double factorial = 1;
    for (int k = 2; k <= first + static_cast<int>(i) * step; ++k) factorial *= k;
    out[i] = (alternating && i % 2 == 1 ? -1 : 1) / factorial;
  }
  return out;
}

// The logarithm of 2 in two parts. The first has 31 bits: times an exponent it is exact.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// Natural logarithm. Minus infinity for 0, NaN for negative numbers.
inline double portable_log(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::nan("");
  if (x > std::numeric_limits<double>::max()) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.5 * std::numbers::sqrt2) {
    m *= 2;
    --exponent;
  }
  // log(m) = 2 atanh(s) = 2 s + 2 s z (1/3 + z/5 + z^2/7 + ...), and z < 0.03.
  constexpr std::array<double, 10> kOdd = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                           1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  const double twice = s + s;
  return exponent * kLn2High + (twice + (twice * z * polynomial(kOdd, z) + exponent * kLn2Low));
}

// e^x for |x| <= 700.
inline double portable_exp(double x) {
  const double n = std::nearbyint(x * std::numbers::log2e);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  // 1 + r + r^2 (1/2! + r/3! + ... + r^11/13!), and |r| < 0.35.
  constexpr auto kTerms = reciprocal_factorials<12>(2, 1, false);
  return std::ldexp(1 + (r + r * r * polynomial(kTerms, r)), static_cast<int>(n));
}

// 1 / (1 + e^-x), of any x. NaN for NaN.
inline double portable_sigmoid(double x) {
  if (std::isnan(x)) return x;
  return 1 / (1 + portable_exp(std::clamp(-x, -700.0, 700.0)));
}

// x^y for x > 0 and |y log(x)| <= 700.
inline double portable_pow(double x, double y) { return portable_exp(y * portable_log(x)); }

struct SineCosine {
  double sine = 0;
  double cosine = 1;
};

// Larger angles are first reduced with bounded_angle().
inline constexpr double kLargestAngle = 0x1p25;

inline double bounded_angle(double angle) {
  if (std::abs(angle) <= kLargestAngle) return angle;
  return std::remainder(angle, 2 * std::numbers::pi);  // exact in every C library
}

// Of an angle in radians, at most kLargestAngle. Without branches, so that a loop can be vectorised.
[[gnu::always_inline]] inline SineCosine sine_cosine(double angle) {
  // Adding it leaves the nearest whole number in the low bits.
  constexpr double kRound = 0x1.8p52;
  // Pi / 2 in three parts. The first two have 28 bits: times n they are exact.
  constexpr double kHigh = 0x1.921fb54p+0, kMiddle = 0x1.10b461p-30, kLow = 0x1.a62633145c06ep-58;
  constexpr auto kSine = reciprocal_factorials<7>(3, 2, true);    // 1/3!, -1/5!, ..., 1/15!
  constexpr auto kCosine = reciprocal_factorials<7>(4, 2, true);  // 1/4!, -1/6!, ..., 1/16!
  const double rounded = angle * (2 * std::numbers::inv_pi) + kRound;
  const double n = rounded - kRound;
  const double r = ((angle - n * kHigh) - n * kMiddle) - n * kLow;  // |r| <= pi / 4
  const double z = r * r;
  const double sine = r - r * z * polynomial(kSine, z);
  const double cosine = (1 - 0.5 * z) + z * z * polynomial(kCosine, z);
  // Of the quadrants 0 to 3, 1 and 3 swap the two, 2 and 3 negate the sine, 1 and 2 the cosine.
  const auto quadrant = std::bit_cast<uint64_t>(rounded);
  const uint64_t swaps = uint64_t{0} - (quadrant & 1);
  const auto s = std::bit_cast<uint64_t>(sine), c = std::bit_cast<uint64_t>(cosine);
  const uint64_t changed = (s ^ c) & swaps;
  return {.sine = std::bit_cast<double>((s ^ changed) ^ ((quadrant & 2) << 62)),
          .cosine = std::bit_cast<double>((c ^ changed) ^ (((quadrant + 1) & 2) << 62))};
}

}  // namespace octavo
