#include "generation/reasoning_constraint.h"

#include <gtest/gtest.h>

#include "text/testing/test_vocab.h"

namespace octavo {
namespace {

constexpr TokenId kStop = 258;
constexpr TokenId kOpen = 259;

// Allows only the given token, any number of times.
class Only : public Constraint {
 public:
  explicit Only(TokenId token) : token_(token) {}
  std::unique_ptr<ConstraintState> begin() const override {
    return std::make_unique<State>(token_);
  }

 private:
  class State : public ConstraintState {
   public:
    explicit State(TokenId token) : token_(token) {}
    std::vector<uint32_t> allowed() override {
      std::vector<uint32_t> words(9);
      words[static_cast<size_t>(token_) / 32] |= 1U << (token_ % 32);
      return words;
    }
    bool accept(TokenId token) override {
      if (token == token_) ++count_;
      return token == token_;
    }
    void take_back(int tokens) override {
      count_ -= tokens;
      EXPECT_GE(count_, 0);
    }

   private:
    TokenId token_;
    int count_ = 0;
  };
  TokenId token_;
};

ReasoningRules rules(std::optional<int> budget, TokenId inner = 'j') {
  return {.inside = true,
          .open = kOpen,
          .close = "</t>",
          .budget = budget,
          .vocab = 260,
          .stop_tokens = {kStop},
          .inner = std::make_shared<Only>(inner)};
}

std::unique_ptr<ConstraintState> begin(const ReasoningRules& rules) {
  static std::vector<std::shared_ptr<const Constraint>> kept;
  kept.push_back(reasoning_constraint(tokenizer_of(byte_level_vocab()), rules));
  return kept.back()->begin();
}

std::vector<TokenId> tokens_of(const std::vector<uint32_t>& words) {
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < 260; ++token) {
    const auto bit = static_cast<size_t>(token);
    if (words.empty() || (words[bit / 32] >> (bit % 32) & 1) != 0) tokens.push_back(token);
  }
  return tokens;
}

void say(ConstraintState& state, std::string_view text) {
  for (const char c : text) ASSERT_TRUE(state.accept(c)) << c;
}

TEST(ReasoningConstraint, TheGrammarStartsAfterTheMarker) {
  const auto state = begin(rules({}));
  EXPECT_EQ(tokens_of(state->allowed()).size(), 259u);  // all but the stop token
  EXPECT_FALSE(state->accept(kStop));
  say(*state, "hm </x </t>");
  EXPECT_EQ(tokens_of(state->allowed()), std::vector<TokenId>{'j'});
  EXPECT_FALSE(state->accept('x'));
  EXPECT_TRUE(state->accept('j'));
}

TEST(ReasoningConstraint, AtTheBudgetOnlyTheMarkerIsAllowed) {
  const auto state = begin(rules(3));
  say(*state, "abc");
  for (const char c : std::string_view("</t>")) {
    EXPECT_EQ(tokens_of(state->allowed()), std::vector<TokenId>{c});
    EXPECT_FALSE(state->accept('z'));
    EXPECT_TRUE(state->accept(c));
  }
  EXPECT_EQ(tokens_of(state->allowed()), std::vector<TokenId>{'j'});
}

TEST(ReasoningConstraint, TokensAreTakenBackAcrossTheMarker) {
  const auto state = begin(rules(3));
  say(*state, "abc</t>jj");
  state->take_back(4);  // jj> and t
  EXPECT_EQ(tokens_of(state->allowed()), std::vector<TokenId>{'t'});
  say(*state, "t>j");
  state->take_back(8);
  EXPECT_EQ(tokens_of(state->allowed()).size(), 259u);
}

TEST(ReasoningConstraint, TheModelMayOpenItOrAnswer) {
  ReasoningRules open = rules({});
  open.inside = false;
  const auto thinks = begin(open);
  EXPECT_EQ(tokens_of(thinks->allowed()), (std::vector<TokenId>{'j', kOpen}));
  EXPECT_TRUE(thinks->accept(kOpen));
  say(*thinks, "x</t>j");
  const auto answers = begin(open);
  EXPECT_FALSE(answers->accept('x'));
  EXPECT_TRUE(answers->accept('j'));
  EXPECT_EQ(tokens_of(answers->allowed()), std::vector<TokenId>{'j'});
}

TEST(ReasoningConstraint, WithoutAGrammarOnlyTheBudgetApplies) {
  ReasoningRules free = rules(1);
  free.inner = nullptr;
  const auto state = begin(free);
  EXPECT_TRUE(state->allowed().empty());
  say(*state, "a</t>");
  EXPECT_TRUE(state->allowed().empty());
  EXPECT_TRUE(state->accept(kStop));
}

}  // namespace
}  // namespace octavo
