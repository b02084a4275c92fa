#include "kernels/cpu/token_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/portable_math.h"
#include "kernels/cpu/isa.h"

namespace octavo::cpu {
namespace {

TEST(Rotations, AreSinesAndCosinesOfRoundedAngles) {
  prepare_thread();
  constexpr float kMagnitude = 1.25f;
  std::vector<float> frequencies;  // not a multiple of any vector's width
  for (int i = 0; i < 37; ++i)
    frequencies.push_back(static_cast<float>(std::pow(500000.0, -i / 37.0)));
  const std::vector<int32_t> positions = {0, 1, 2, 77, 4095, 131071, 10000000};
  const auto tokens = static_cast<int64_t>(positions.size());
  Rotations rotations;
  rotations.fill({.positions = positions.data(),
                  .inverse_frequencies = frequencies.data(),
                  .pairs = static_cast<int64_t>(frequencies.size()),
                  .magnitude = kMagnitude},
                 1, tokens);
  size_t at = 0;
  for (size_t t = 1; t < positions.size(); ++t) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(positions[t]) * frequency;
      const SineCosine of = sine_cosine(static_cast<double>(angle));
      EXPECT_EQ(rotations.cosine[at], static_cast<float>(of.cosine) * kMagnitude);
      EXPECT_EQ(rotations.sine[at], static_cast<float>(of.sine) * kMagnitude);
      EXPECT_NEAR(rotations.cosine[at], std::cos(angle) * kMagnitude, 2e-7f);
      EXPECT_NEAR(rotations.sine[at], std::sin(angle) * kMagnitude, 2e-7f);
      ++at;
    }
  }
  EXPECT_EQ(at, rotations.sine.size());
}

TEST(Rotations, TakeEachPairsPositionFromItsAxis) {
  const std::vector<int32_t> planes = {5, 6, 7, 50, 60, 70};  // two axes of three tokens
  const std::vector<float> frequencies = {1.0f, 0.5f, 0.25f};
  const std::vector<int32_t> axes = {1, 0, 1};
  Rotations rotations;
  rotations.fill({.positions = planes.data(),
                  .inverse_frequencies = frequencies.data(),
                  .pairs = 3,
                  .axes = axes.data(),
                  .axis_stride = 3,
                  .axis_count = 2},
                 1, 3);
  const std::vector<double> angles = {60, 3, 15, 70, 3.5, 17.5};
  ASSERT_EQ(rotations.cosine.size(), angles.size());
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_NEAR(rotations.cosine[i], std::cos(angles[i]), 2e-7);
    EXPECT_NEAR(rotations.sine[i], std::sin(angles[i]), 2e-7);
  }
}

// Config files may contain any factor.
TEST(Rotations, OfEnormousAnglesAreRotations) {
  const std::vector<int32_t> positions = {2000000000};
  const std::vector<float> frequencies = {1.0f, 1e10f, 1e29f};
  Rotations rotations;
  rotations.fill(
      {.positions = positions.data(), .inverse_frequencies = frequencies.data(), .pairs = 3}, 0, 1);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(std::hypot(rotations.cosine[i], rotations.sine[i]), 1.0f, 1e-6f);
}

}  // namespace
}  // namespace octavo::cpu
