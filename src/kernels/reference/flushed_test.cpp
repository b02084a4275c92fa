#include "kernels/reference/arithmetic/flushed.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <random>
#include <thread>

#include "kernels/cpu/isa.h"

namespace octavo {
namespace {

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

TEST(Flushed, DenormalsCountAsZeroWithTheirSign) {
  EXPECT_EQ(bits_of(arithmetic::flush(-1e-40f)), 0x80000000u);
  EXPECT_EQ(arithmetic::flush(FLT_MIN), FLT_MIN);
  EXPECT_EQ(arithmetic::add(FLT_MIN, -1.5f * FLT_MIN), 0.0f);
  EXPECT_EQ(bits_of(arithmetic::add(FLT_MIN, -1.5f * FLT_MIN)), 0x80000000u);
  EXPECT_EQ(arithmetic::mul(1e-40f, 1e30f), 0.0f);
  EXPECT_EQ(bits_of(arithmetic::div(-FLT_MIN, 2)), 0x80000000u);
  EXPECT_EQ(arithmetic::fma(1e-20f, 1e-20f, 1e-40f), 0.0f);
  EXPECT_EQ(arithmetic::to_bf16(-1e-39f), 0x8000);
  EXPECT_EQ(bits_of(arithmetic::from_bf16(0x8001)), 0x80000000u);
}

// 1 - 2^-24.5 rounds to 1 - 2^-24 with 24 bits, and to 1 as a denormal.
TEST(Flushed, ResultsThatRoundToTheSmallestNormalNumber) {
  const float tiny = std::ldexp(1.0f, -63);
  const auto less = [&](float power) {
    return arithmetic::fma(tiny, std::ldexp(-power, -88), FLT_MIN);
  };
  EXPECT_EQ(less(1.5f), 0.0f);
  EXPECT_EQ(less(0.5f), FLT_MIN);
}

#ifdef __x86_64__
// Arm decides about denormals before rounding, so the smallest normal number may differ there.
TEST(Flushed, EqualsTheProcessorWithItsFloatStateSet) {
  std::thread([] {
    cpu::set_float_state();
    std::mt19937 random(7);
    for (int i = 0; i < 1'000'000; ++i) {
      const auto number = [&] {
        const auto bits = static_cast<uint32_t>(random());
        if (i % 2 == 0) return std::bit_cast<float>(bits);
        const uint32_t exponent = 60 + bits / 256 % 10;  // products near the smallest normal number
        return std::bit_cast<float>((bits & 0x807fffffu) | exponent << 23);
      };
      const float a = number(), b = number();
      const auto expect_same = [&](float actual, float expected) {
        if (std::isnan(actual) && std::isnan(expected)) return;
        ASSERT_EQ(bits_of(actual), bits_of(expected)) << a << ", " << b;
      };
      expect_same(arithmetic::add(a, b), a + b);
      expect_same(arithmetic::sub(a, b), a - b);
      expect_same(arithmetic::mul(a, b), a * b);
      expect_same(arithmetic::div(a, b), a / b);
    }
  }).join();
}
#endif

}  // namespace
}  // namespace octavo
