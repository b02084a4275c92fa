#include "kernels/types/score_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

ScoreHead::Matrix unit_matrix(int size) {
  ScoreHead::Matrix matrix{.rows = size, .columns = size};
  matrix.weight.assign(static_cast<size_t>(size) * static_cast<size_t>(size), 0.0f);
  for (size_t i = 0; i < static_cast<size_t>(size); ++i)
    matrix.weight[i * static_cast<size_t>(size) + i] = 1;
  return matrix;
}

std::vector<float> activated(ScoreActivation kind) {
  return ScoreHead({.dense = unit_matrix(3), .activation = kind, .out = unit_matrix(3)})
      .logits(std::vector<float>{-1, 0, 2});
}

TEST(ScoreHead, MultipliesAndAddsTheBias) {
  const ScoreHead head(
      {.out = {.rows = 2, .columns = 3, .weight = {1, 2, 3, -1, 0, 1}, .bias = {0.5f, -1}}});
  EXPECT_EQ(head.labels(), 2);
  EXPECT_THAT(head.logits(std::vector<float>{1, 10, 100}), ElementsAre(321.5f, 98.0f));
}

TEST(ScoreHead, HasTheActivationsOfClassifiers) {
  constexpr float kNear = 1e-6f;
  EXPECT_THAT(activated(ScoreActivation::kNone), ElementsAre(-1, 0, 2));
  EXPECT_THAT(activated(ScoreActivation::kTanh),
              ElementsAre(FloatNear(-0.7615942f, kNear), FloatNear(0, kNear),
                          FloatNear(0.9640276f, kNear)));
  EXPECT_THAT(activated(ScoreActivation::kGelu),
              ElementsAre(FloatNear(-0.1586553f, kNear), FloatNear(0, kNear),
                          FloatNear(1.9544997f, kNear)));
  EXPECT_THAT(activated(ScoreActivation::kRelu), ElementsAre(0, 0, 2));
  EXPECT_THAT(activated(ScoreActivation::kSilu),
              ElementsAre(FloatNear(-0.2689414f, kNear), FloatNear(0, kNear),
                          FloatNear(1.7615942f, kNear)));
}

TEST(ScoreHead, ActivatesNumbersOfAnySize) {
  const auto activate = [](ScoreActivation kind, float x) {
    return ScoreHead({.activation = kind, .out = unit_matrix(1)}).logits(std::vector<float>{x})[0];
  };
  for (const float size : {800.0f, 1e10f, 1e38f}) {
    EXPECT_EQ(activate(ScoreActivation::kTanh, size), 1) << size;
    EXPECT_EQ(activate(ScoreActivation::kTanh, -size), -1) << size;
    EXPECT_EQ(activate(ScoreActivation::kSilu, size), size);
    EXPECT_THAT(activate(ScoreActivation::kSilu, -size), FloatNear(0, 1e-6f)) << size;
  }
  EXPECT_TRUE(std::isnan(activate(ScoreActivation::kTanh, std::nanf(""))));
  EXPECT_TRUE(std::isnan(activate(ScoreActivation::kSilu, std::nanf(""))));
}

TEST(ScoreHead, NormsBeforeTheOutput) {
  const ScoreHead head(
      {.norm = ScoreHead::LayerNorm{.weight = {1, 2, 1}, .bias = {0, 0, 1}, .eps = 0},
       .out = unit_matrix(3)});
  const float deviation = std::sqrt(2.0f / 3);
  EXPECT_THAT(head.logits(std::vector<float>{1, 2, 3}),
              ElementsAre(FloatNear(-1 / deviation, 1e-6f), FloatNear(0, 1e-6f),
                          FloatNear(1 / deviation + 1, 1e-6f)));
}

TEST(ScoreHead, SumsOddWidthsCompletely) {
  for (const int width : {1, 7, 8, 9, 33}) {
    const auto columns = static_cast<size_t>(width);
    const ScoreHead head(
        {.out = {.rows = 1, .columns = width, .weight = std::vector<float>(columns, 2)}});
    EXPECT_THAT(head.logits(std::vector<float>(columns, 0.5f)),
                ElementsAre(static_cast<float>(width)));
  }
}

TEST(ScoreHead, GivesTheSameBitsAgain) {
  std::vector<float> x, weight;
  for (int i = 0; i < 100; ++i) {
    x.push_back(std::sin(static_cast<float>(i)) * 1e3f);
    weight.push_back(std::cos(static_cast<float>(i) * 7));
  }
  const ScoreHead head(
      {.activation = ScoreActivation::kTanh, .out = {.rows = 1, .columns = 100, .weight = weight}});
  const float first = head.logits(x)[0];
  const float again = ScoreHead(head).logits(x)[0];
  EXPECT_EQ(std::memcmp(&first, &again, sizeof(first)), 0);
}

}  // namespace
}  // namespace octavo
