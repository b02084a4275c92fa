#include "scheduler/prompt_history.h"

#include <gtest/gtest.h>

#include <numeric>

namespace octavo {
namespace {

std::vector<TokenId> text(int count, TokenId last = -1) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  if (last >= 0) tokens.back() = last;
  return tokens;
}

const PromptHistory::Owner kMe{"key", ""};

TEST(PromptHistory, FindsTheMostSimilarText) {
  PromptHistory history;
  history.remember(text(10, 77), kMe);
  history.remember(text(30, 88), kMe);
  const auto match = history.closest(text(40), kMe);
  EXPECT_EQ(match.common, 29);
  EXPECT_FALSE(match.ended);
}

TEST(PromptHistory, ALongerTextReplacesItsPrefix) {
  PromptHistory history;
  for (int length : {10, 20, 30, 15}) history.remember(text(length), kMe);
  EXPECT_EQ(history.texts(), 1u);
  EXPECT_EQ(history.tokens(), 30u);
  EXPECT_TRUE(history.closest(text(50), kMe).ended);
}

TEST(PromptHistory, SeparatesOwners) {
  PromptHistory history;
  history.remember(text(10), kMe);
  for (const PromptHistory::Owner& other :
       {PromptHistory::Owner{"other", ""}, PromptHistory::Owner{"key", "salt"}}) {
    EXPECT_FALSE(history.closest(text(10), other).known);
    EXPECT_EQ(history.closest(text(10), other).common, 0);
  }
}

TEST(PromptHistory, IsBounded) {
  PromptHistory history;
  for (int i = 0; i < 200; ++i) history.remember(text(20'000, 100'000 + i), kMe);
  EXPECT_LE(history.texts(), PromptHistory::kMostTexts);
  EXPECT_LE(history.tokens(), PromptHistory::kMostTokens);
  history.remember(text(2 << 20), kMe);
  EXPECT_LE(history.tokens(), PromptHistory::kMostTokens);
}

}  // namespace
}  // namespace octavo
