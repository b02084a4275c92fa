// Requests that continue the output of an earlier attempt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "scheduler/testing/scheduler_fixture.h"
#include "scheduler/testing/toy_constraint.h"

namespace octavo {
namespace {

using testing::IsEmpty;

constexpr TokenId kLastToken = 7;

class ResumedTest : public SchedulerFixture {
 protected:
  using Answers = std::map<int, std::vector<TokenId>>;  // by choice

  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      auto& answer = answers_[update.choice];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.cached_tokens) cached_[update.choice] = *update.cached_tokens;
      if (!update.error.empty()) errors_.push_back(update.error);
    }
  }
  Answers run(const Request& request, int pages = 64) {
    make({.max_num_batched_tokens = 16, .max_model_len = 100, .stop_token_ids = {kLastToken}},
         pages);
    answers_.clear();
    add(request);
    run_all();
    return answers_;
  }
  static std::vector<TokenId> first(const std::vector<TokenId>& tokens, size_t count) {
    return {tokens.begin(),
            tokens.begin() + static_cast<ptrdiff_t>(std::min(count, tokens.size()))};
  }
  static std::vector<TokenId> after(const std::vector<TokenId>& tokens, size_t count) {
    return {tokens.begin() + static_cast<ptrdiff_t>(std::min(count, tokens.size())), tokens.end()};
  }

  Answers answers_;
  std::map<int, int> cached_;
  std::vector<std::string> errors_;
};

TEST_F(ResumedTest, ContinuesAfterAnyNumberOfTokens) {
  Request request{.prompt = numbers(3, 11), .n = 2, .max_tokens = 40, .ignore_eos = true};
  request.sampling = {.temperature = 1, .seed = 5, .repetition_penalty = 2};
  const Answers whole = run(request);
  for (const size_t cut : {1, 7, 15, 39}) {
    request.resumed = {{.tokens = first(whole.at(0), cut)},
                       {.tokens = first(whole.at(1), cut / 2)}};
    const Answers rest = run(request);
    EXPECT_EQ(rest.at(0), after(whole.at(0), cut));
    EXPECT_EQ(rest.at(1), after(whole.at(1), cut / 2));
  }
}

TEST_F(ResumedTest, FollowsTheConstraint) {
  Request request{.prompt = numbers(3, 11), .max_tokens = 60};
  request.sampling = {.temperature = 1, .seed = 5};
  const ToyRules rules{.vocab = kFakeVocab, .stop = kLastToken, .length = 20};
  request.constraint = std::make_shared<ToyConstraint>(rules);
  const Answers whole = run(request);
  ASSERT_EQ(whole.at(0).size(), 21u);
  for (const bool followed : {false, true}) {
    for (size_t cut = 1; cut < 21; ++cut) {
      ResumedOutput output{.tokens = first(whole.at(0), cut)};
      if (followed) {
        output.state = request.constraint->begin();
        for (const TokenId token : output.tokens) ASSERT_TRUE(output.state->accept(token));
      }
      request.resumed = {output};
      EXPECT_EQ(run(request).at(0), after(whole.at(0), cut)) << cut;
    }
  }
}

TEST_F(ResumedTest, TokensThatDoNotFitTheConstraintEndTheChoice) {
  Request request{.prompt = numbers(3, 11), .max_tokens = 60};
  request.constraint = std::make_shared<ToyConstraint>(
      ToyRules{.vocab = kFakeVocab, .stop = kLastToken, .length = 20});
  request.resumed = {{.tokens = {1}}};
  EXPECT_THAT(run(request).at(0), IsEmpty());
  EXPECT_THAT(errors_, testing::ElementsAre("token 1 does not fit the grammar"));
}

TEST_F(ResumedTest, AnEndedChoiceDoesNotRun) {
  Request request{.prompt = numbers(3, 11), .n = 3, .max_tokens = 20, .ignore_eos = true};
  request.sampling = {.temperature = 1, .seed = 5};
  const Answers whole = run(request);
  request.resumed = {
      {.tokens = whole.at(0), .finished = true}, {}, {.tokens = {}, .finished = true}};
  const Answers rest = run(request);
  EXPECT_EQ(rest, (Answers{{1, whole.at(1)}}));
}

// Pages of earlier output may be cached, but are not part of the prompt.
TEST_F(ResumedTest, CachedTokensAreTheOnesOfThePrompt) {
  Request request{.prompt = numbers(3, 16), .max_tokens = 40, .ignore_eos = true};
  const Answers whole = run(request);
  request.resumed = {{.tokens = first(whole.at(0), 30)}};
  answers_.clear();
  add(request);  // to the same scheduler
  run_all();
  EXPECT_EQ(answers_.at(0), after(whole.at(0), 30));
  EXPECT_EQ(cached_.at(0), 16);
}

TEST_F(ResumedTest, EachRunningChoiceNeedsSpaceForAToken) {
  const auto refused = [](const Request& request) {
    try {
      validate(request, {.max_model_len = 20, .vocab = 50});
    } catch (const RequestError& error) {
      return error.param();
    }
    return std::string();
  };
  Request request{.prompt = numbers(0, 10), .max_tokens = 5};
  request.resumed = {{.tokens = {1, 2, 3, 4}}};
  EXPECT_EQ(refused(request), "");
  request.resumed = {{.tokens = {1, 2, 3, 4, 5}}};
  EXPECT_EQ(refused(request), "resume_token_ids");
  request.resumed[0].finished = true;  // but then nothing runs
  EXPECT_EQ(refused(request), "resume_token_ids");
  request.resumed = {{}, {}};
  EXPECT_EQ(refused(request), "resume_token_ids");
  request.resumed = {{.tokens = {50}}};
  EXPECT_EQ(refused(request), "resume_token_ids");
  request.max_tokens = 100;
  request.resumed = {{.tokens = numbers(0, 10)}};
  EXPECT_EQ(refused(request), "resume_token_ids");
}

}  // namespace
}  // namespace octavo
