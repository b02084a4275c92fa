#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace octavo {
namespace {

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

TEST(Half, KnownValues) {
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc000), -2.0f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x03ff), 0x1.ff8p-15f);
  EXPECT_EQ(half_to_float(0x0400), 0x1p-14f);
  EXPECT_EQ(half_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_TRUE(std::isnan(half_to_float(0x7c01)));
}

TEST(Half, RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(float_to_half(65519.99f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);
  EXPECT_EQ(float_to_half(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(float_to_half(0x1.002p0f), 0x3c00);  // halfway to the next: the even one
  EXPECT_EQ(float_to_half(0x1.006p0f), 0x3c02);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
}

TEST(Half, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto half = static_cast<uint16_t>(pattern);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      ASSERT_EQ(float_to_half(value), half | 0x200u) << pattern;
    } else {
      ASSERT_EQ(float_to_half(value), half) << pattern;
    }
  }
}

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 NativeHalf;

uint16_t native_bits(float value) {
  return std::bit_cast<uint16_t>(static_cast<NativeHalf>(value));
}

TEST(Half, EveryPatternEqualsTheCompilersOwn) {
  for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto half = static_cast<uint16_t>(pattern);
    const float expected = static_cast<float>(std::bit_cast<NativeHalf>(half));
    const float actual = half_to_float(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << pattern;
    } else {
      ASSERT_EQ(bits_of(actual), bits_of(expected)) << pattern;
    }
  }
}

// Every half, the midpoint to its neighbour, and the floats on both sides of each.
TEST(Half, RoundingEqualsTheCompilersOwn) {
  for (uint32_t pattern = 0; pattern < 0x7c00; ++pattern) {
    const float low = half_to_float(static_cast<uint16_t>(pattern));
    const float high =
        pattern == 0x7bff ? 65536.0f : half_to_float(static_cast<uint16_t>(pattern + 1));
    const float middle = low + (high - low) / 2;
    for (const float point : {low, middle}) {
      for (const float value : {std::nextafter(point, -1e9f), point, std::nextafter(point, 1e9f)}) {
        ASSERT_EQ(float_to_half(value), native_bits(value)) << value;
        ASSERT_EQ(float_to_half(-value), native_bits(-value)) << -value;
      }
    }
  }
}
#endif

TEST(Bf16, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bf16 = static_cast<uint16_t>(pattern);
    const float value = bf16_to_float(bf16);
    ASSERT_EQ(float_to_bf16(value), std::isnan(value) ? (bf16 | 0x40u) : bf16) << pattern;
  }
}

TEST(Bf16, RoundsToNearestEven) {
  for (uint32_t pattern = 0; pattern < 0x7f80; ++pattern) {
    const uint32_t tie = (pattern << 16) | 0x8000u;
    const uint32_t even = pattern + (pattern & 1u);
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(tie)), even) << pattern;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(tie - 1)), pattern) << pattern;
    ASSERT_EQ(float_to_bf16(std::bit_cast<float>(tie + 1)), pattern + 1) << pattern;
  }
}

}  // namespace
}  // namespace octavo
