#include "scheduler/ngram_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = std::vector<TokenId>;

TEST(NgramIndex, PredictsTheEarlierContinuation) {
  NgramIndex index({.shortest = 2, .longest = 3});
  EXPECT_THAT(index.continuation(Tokens{1, 2, 3, 4, 5, 1, 2}, 3), ElementsAre(3, 4, 5));
}

TEST(NgramIndex, ShorterMatchesAreIgnored) {
  NgramIndex index({.shortest = 2, .longest = 3});
  EXPECT_THAT(index.continuation(Tokens{1, 2, 3, 4, 2}, 3), IsEmpty());
  EXPECT_THAT(index.continuation(Tokens{1}, 3), IsEmpty());
  EXPECT_THAT(NgramIndex({.shortest = 1, .longest = 2}).continuation(Tokens{}, 3), IsEmpty());
}

TEST(NgramIndex, TheLongestMatchCountsThenTheLatest) {
  NgramIndex index({.shortest = 1, .longest = 3});
  EXPECT_THAT(index.continuation(Tokens{7, 1, 2, 50, 1, 2, 60, 9, 2, 70, 7, 1, 2}, 1),
              ElementsAre(50));
  NgramIndex latest({.shortest = 2, .longest = 2});
  EXPECT_THAT(latest.continuation(Tokens{1, 2, 50, 1, 2, 60, 1, 2}, 1), ElementsAre(60));
}

TEST(NgramIndex, ARepetitionIsContinued) {
  NgramIndex index({.shortest = 2, .longest = 4});
  EXPECT_THAT(index.continuation(Tokens{9, 1, 2, 1, 2, 1, 2}, 5), ElementsAre(1, 2, 1, 2, 1));
}

TEST(NgramIndex, GrowingTextsFindWhatASearchFinds) {
  std::mt19937 random(3);
  Tokens text;
  NgramIndex index({.shortest = 3, .longest = 3});
  int found = 0;
  for (int i = 0; i < 4000; ++i) {
    const int added = 1 + static_cast<int>(random() % 3);
    for (int j = 0; j < added; ++j) text.push_back(static_cast<TokenId>(random() % 12));
    const Tokens next = index.continuation(text, 1);
    if (text.size() < 4) continue;
    Tokens expected;
    for (size_t at = text.size() - 1; at >= 3 && expected.empty(); --at) {
      if (std::equal(text.end() - 3, text.end(),
                     text.begin() + static_cast<std::ptrdiff_t>(at) - 3))
        expected = {text[at]};
    }
    // A collision may lose an entry but never invent one.
    if (!next.empty()) {
      EXPECT_EQ(next, expected);
    }
    found += !next.empty();
  }
  EXPECT_GT(found, 2000);
}

}  // namespace
}  // namespace octavo
