#include "generation/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

std::vector<float> finished(std::vector<float> vector, const EmbeddingForm& form) {
  finish_embedding(vector, form);
  return vector;
}

TEST(Embedding, IsTruncatedBeforeItIsNormalised) {
  EXPECT_THAT(finished({3, 4, 100}, {.dimensions = 2}), ElementsAre(0.6F, 0.8F));
  EXPECT_THAT(finished({3, 4}, {}), ElementsAre(0.6F, 0.8F));
  EXPECT_THAT(finished({3, 4, 5}, {.dimensions = 2, .normalize = false}), ElementsAre(3, 4));
}

TEST(Embedding, LargeNumbersDoNotOverflowAndZerosStay) {
  EXPECT_THAT(finished({3e30F, 4e30F}, {}),
              ElementsAre(FloatNear(0.6F, 1e-6F), FloatNear(0.8F, 1e-6F)));
  EXPECT_THAT(finished({0, 0}, {}), ElementsAre(0, 0));
}

TEST(Embedding, ANonFiniteValueIsAnError) {
  EXPECT_THROW(finished({1, std::numeric_limits<float>::quiet_NaN()}, {}), RequestError);
  EXPECT_THROW(finished({1, std::numeric_limits<float>::infinity()}, {.dimensions = 1}),
               RequestError);
}

}  // namespace
}  // namespace octavo
