#include "kernels/cpu/logit_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/testing/random_logits.h"
#include "kernels/testing/random_rules.h"
#include "kernels/testing/support.h"

namespace octavo::cpu {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

// A direct implementation of the contract, token by token.
std::vector<float> reference(std::vector<float> logits, const LogitRules& rules,
                             const std::vector<TokenId>& prompt,
                             const std::vector<TokenId>& answer) {
  const std::set<TokenId> held_back(rules.held_back.begin(), rules.held_back.end());
  std::set<TokenId> bad;
  for (const auto& word : rules.bad_words) {
    const std::vector<TokenId> start(word.begin(), word.end() - 1);
    if (start.size() <= answer.size() && std::equal(start.rbegin(), start.rend(), answer.rbegin()))
      bad.insert(word.back());
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    float& logit = logits[i];
    if (!rules.allowed.empty() && (rules.allowed[i / 32] >> (i % 32) & 1) == 0) logit = kBanned;
    if (bad.contains(token)) logit = kBanned;
    if (static_cast<int>(answer.size()) < rules.min_tokens && held_back.contains(token))
      logit = kBanned;
    for (const auto& [biased, bias] : rules.logit_bias)
      if (biased == token) logit += bias;
    const auto count = std::count(answer.begin(), answer.end(), token);
    if (count > 0 || std::find(prompt.begin(), prompt.end(), token) != prompt.end())
      logit = logit > 0 ? logit / rules.repetition_penalty : logit * rules.repetition_penalty;
    logit -= rules.frequency_penalty * static_cast<float>(count);
    logit -= count > 0 ? rules.presence_penalty : 0;
  }
  return logits;
}

TEST(LogitRules, EqualTheReference) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 4000; ++trial) {
    const size_t vocab = 2 + random() % 100;
    const auto logits = random_logits(random, vocab, LogitShape::kPeaked);
    const LogitRules rules = random_rules(random, vocab);
    const auto prompt = random_tokens(random, random() % 30, vocab);
    auto answer = random_tokens(random, random() % 40, vocab);
    RowHistory history = history_of(prompt, answer);
    const auto previous = random_tokens(random, 7, vocab);
    if (trial % 3 == 0) {
      history.pending = static_cast<int32_t>(random() % previous.size());
      answer.push_back(previous[static_cast<size_t>(history.pending)]);
    } else if (trial % 3 == 1) {
      const auto drafts = random_tokens(random, 5, vocab);
      history.assumed = std::make_shared<const std::vector<TokenId>>(drafts);
      history.assumed_count = static_cast<int32_t>(random() % 5);
      answer.insert(answer.end(), drafts.begin(), drafts.begin() + history.assumed_count);
    }
    std::vector<float> ruled = logits;
    apply_rules(ruled, rules, history, previous);
    EXPECT_TRUE(same_bits(ruled, reference(logits, rules, prompt, answer))) << "trial " << trial;
  }
}

TEST(LogitRules, AWordIsBannedWhenOnlyItsLastTokenIsMissing) {
  const LogitRules rules{.bad_words = {{5}, {1, 2, 3}, {7, 1, 2, 4}}};
  const auto banned = [&](const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer,
                          const std::vector<TokenId>& pending) {
    RowHistory history = history_of(prompt, answer);
    if (!pending.empty()) history.pending = 0;
    std::vector<float> logits(8, 0);
    apply_rules(logits, rules, history, pending);
    std::vector<TokenId> out;
    for (size_t i = 0; i < logits.size(); ++i)
      if (logits[i] == kBanned) out.push_back(static_cast<TokenId>(i));
    return out;
  };
  using Tokens = std::vector<TokenId>;
  EXPECT_EQ(banned({}, {}, {}), (Tokens{5}));
  EXPECT_EQ(banned({}, {1, 2}, {}), (Tokens{3, 5}));
  EXPECT_EQ(banned({}, {1}, {2}), (Tokens{3, 5}));
  EXPECT_EQ(banned({}, {7, 1}, {2}), (Tokens{3, 4, 5}));
  EXPECT_EQ(banned({}, {1, 2}, {2}), (Tokens{5}));
  EXPECT_EQ(banned({1, 2}, {}, {}), (Tokens{5}));  // the prompt is not part of a word
  EXPECT_EQ(banned({7}, {1, 2}, {}), (Tokens{3, 5}));
}

TEST(LogitRules, IgnoreIdsOutsideTheVocabularyAndBanTokensPastTheMask) {
  const LogitRules rules{.repetition_penalty = 2,
                         .logit_bias = {{-1, 1.0f}, {99, 1.0f}},
                         .bad_words = {{99}, {}},
                         .allowed = {0xFFFFFFFE},
                         .min_tokens = 5,
                         .held_back = {-1, 99}};
  std::vector<float> logits(40, 1);
  apply_rules(logits, rules, history_of({-1, 99, 3}, {}), {});
  EXPECT_EQ(logits[0], kBanned);
  EXPECT_EQ(logits[1], 1);
  EXPECT_EQ(logits[3], 0.5f);
  EXPECT_EQ(logits[32], kBanned);
}

TEST(LogitRules, LeaveNoCountsBehind) {
  const LogitRules rules{.presence_penalty = 1};
  std::vector<float> logits(10, 0);
  apply_rules(logits, rules, history_of({}, {3}), {});
  apply_rules(logits, rules, history_of({}, {4}), {});
  EXPECT_EQ(logits[3], -1);
  EXPECT_EQ(logits[4], -1);
}

}  // namespace
}  // namespace octavo::cpu
