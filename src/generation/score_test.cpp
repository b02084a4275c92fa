#include "generation/score.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace octavo {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The score is the first value less the second one.
ScoreHead difference_head() {
  return ScoreHead({.out = {.rows = 1, .columns = 2, .weight = {1, -1}}});
}

TEST(Score, IsTheLogitOrItsSigmoid) {
  const ScoreHead head = difference_head();
  EXPECT_EQ(head_score(head, std::array{3.0F, 1.0F}, false), 2);
  EXPECT_EQ(head_score(head, std::array{1.0F, 1.0F}, true), 0.5F);
  EXPECT_FLOAT_EQ(head_score(head, std::array{3.0F, 1.0F}, true), 0.880797F);
  EXPECT_EQ(head_score(head, std::array{1e4F, 0.0F}, true), 1);
  EXPECT_EQ(head_score(head, std::array{-1e4F, 0.0F}, true), 0);
}

TEST(Score, TheCosineDoesNotDependOnLengths) {
  EXPECT_FLOAT_EQ(cosine_score(std::array{3.0F, 4.0F}, std::array{6.0F, 8.0F}), 1);
  EXPECT_FLOAT_EQ(cosine_score(std::array{1.0F, 0.0F}, std::array{-5.0F, 0.0F}), -1);
  EXPECT_FLOAT_EQ(cosine_score(std::array{1e30F, 0.0F}, std::array{1e30F, 1e30F}), std::sqrt(0.5F));
  EXPECT_EQ(cosine_score(std::array{1.0F, 0.0F}, std::array{0.0F, 2.0F}), 0);
  EXPECT_EQ(cosine_score(std::array{0.0F, 0.0F}, std::array{0.0F, 2.0F}), 0);
  EXPECT_LE(cosine_score(std::array{0.1F, 0.7F}, std::array{0.1F, 0.7F}), 1);
}

TEST(Score, ANonFiniteValueIsAnError) {
  EXPECT_THROW(head_score(difference_head(), std::array{kNan, 1.0F}, true), RequestError);
  EXPECT_THROW(
      head_score(difference_head(), std::array{std::numeric_limits<float>::infinity(), 1.0F}, true),
      RequestError);
  EXPECT_THROW(cosine_score(std::array{kNan, 1.0F}, std::array{1.0F, 1.0F}), RequestError);
}

}  // namespace
}  // namespace octavo
