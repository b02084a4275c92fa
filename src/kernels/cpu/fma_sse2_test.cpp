#include "kernels/cpu/simd/fma_sse2.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <thread>

#include "kernels/cpu/isa.h"
#include "kernels/reference/arithmetic/flushed.h"

#ifdef __SSE2__

namespace octavo {
namespace {

float with_exponent(uint32_t bits, uint32_t exponent) {
  return std::bit_cast<float>((bits & 0x807fffffu) | exponent << 23);
}

struct Terms {
  float a, b, c;
};

Terms random_terms(std::mt19937& random, int kind) {
  const auto bits = [&] { return static_cast<uint32_t>(random()); };
  switch (kind) {
    case 0:  // any bits, NaN and infinities among them
      return {std::bit_cast<float>(bits()), std::bit_cast<float>(bits()),
              std::bit_cast<float>(bits())};
    case 1:  // terms of similar size, often cancelling
      return {with_exponent(bits(), 120 + bits() % 8), with_exponent(bits(), 120 + bits() % 8),
              with_exponent(bits(), 110 + bits() % 24)};
    case 2: {  // a * b is half a unit of c's last place, and a little more or less
      const bool less = bits() % 2 == 0;
      const float a = less ? 1 + 0x1p-23f : 1 + 0x1p-12f;
      const float b = less ? 1 - 0x1p-23f : 1 - 0x1p-12f + 0x1p-24f;
      const int power = static_cast<int>(bits() % 100) - 50;
      return {std::ldexp(a, power - 24), bits() % 2 == 0 ? b : -b,
              std::ldexp(with_exponent(bits(), 127), power)};
    }
    default:  // results near the smallest normal float
      return {with_exponent(bits() & 0xffff0000u, 40 + bits() % 26),
              with_exponent(bits() & 0xffff0000u, 40 + bits() % 26),
              with_exponent(bits() & 0xff80000fu, bits() % 3)};
  }
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(FmaSse2, RoundsOnce) {
  std::thread([] {
    cpu::set_float_state();
    std::mt19937 random(3);
    int rounded_twice = 0;  // cases that a product and a sum in double get wrong
    for (int i = 0; i < 2'000'000; i += 4) {
      alignas(16) float a[4], b[4], c[4], out[4];
      for (int lane = 0; lane < 4; ++lane) {
        const Terms terms = random_terms(random, (i / 4 + lane) % 4);
        a[lane] = terms.a;
        b[lane] = terms.b;
        c[lane] = terms.c;
      }
      _mm_store_ps(out, cpu::scalar::fma_sse2(_mm_load_ps(a), _mm_load_ps(b), _mm_load_ps(c)));
      for (int lane = 0; lane < 4; ++lane) {
        const float expected = arithmetic::fma(a[lane], b[lane], c[lane]);
        ASSERT_TRUE(same(out[lane], expected)) << a[lane] << " * " << b[lane] << " + " << c[lane]
                                               << " = " << out[lane] << ", not " << expected;
        const double product = static_cast<double>(a[lane]) * static_cast<double>(b[lane]);
        if (!same(static_cast<float>(product + static_cast<double>(c[lane])), expected))
          ++rounded_twice;
      }
    }
    EXPECT_GT(rounded_twice, 1000);
  }).join();
}

}  // namespace
}  // namespace octavo

#endif
