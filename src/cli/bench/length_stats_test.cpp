#include "cli/bench/length_stats.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(LengthStats, MeanAndDeviationOfASample) {
  const LengthStats stats = length_stats({.texts = {"a", "b", "c", "d"}, .lengths = {2, 4, 6, 8}});
  EXPECT_EQ(stats.answers, 4u);
  EXPECT_DOUBLE_EQ(stats.mean, 5);
  EXPECT_NEAR(stats.deviation, 2.581989, 1e-6);
  EXPECT_EQ(stats.least, 2u);
  EXPECT_EQ(stats.most, 8u);
  EXPECT_EQ(length_stats({.texts = {"a"}, .lengths = {7}}).deviation, 0);
}

TEST(LengthStats, TheHashSeesEveryByteAndWhereATextEnds) {
  const auto hash = [](std::vector<std::string> texts) {
    return length_stats({.texts = std::move(texts), .lengths = {1, 1}}).hash;
  };
  EXPECT_EQ(hash({"ab", "c"}), hash({"ab", "c"}));
  EXPECT_NE(hash({"ab", "c"}), hash({"a", "bc"}));
  EXPECT_NE(hash({"ab", "c"}), hash({"ab", "d"}));
}

TEST(LengthStats, DifferentTextsAreCounted) {
  const AnswerSet first{.texts = {"a", "b", "c"}};
  EXPECT_EQ(different_texts(first, first), 0u);
  EXPECT_EQ(different_texts(first, {.texts = {"a", "B", "c "}}), 2u);
}

}  // namespace
}  // namespace octavo
