// Constrained requests in the scheduler: alone, in batches, preempted, failed, aborted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scheduler/testing/scheduler_fixture.h"
#include "scheduler/testing/toy_constraint.h"

namespace octavo {
namespace {

using testing::SizeIs;

constexpr TokenId kEndToken = 7;

class ConstrainedTest : public SchedulerFixture {
 protected:
  using Key = std::pair<RequestId, int>;

  Request constrained(int first, int prompt, ToyRules rules) {
    rules.vocab = kFakeVocab;
    rules.stop = kEndToken;
    Request request{.prompt = numbers(first, prompt), .max_tokens = 60};
    request.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(first)};
    request.constraint = std::make_shared<ToyConstraint>(rules);
    return request;
  }
  void make_scheduler(int pages = 64) {
    make({.max_num_batched_tokens = 16, .max_model_len = 100, .stop_token_ids = {kEndToken}},
         pages);
  }
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      auto& answer = answers_[{update.request, update.choice}];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.finish) ends_[{update.request, update.choice}] = *update.finish;
      if (!update.error.empty()) errors_.push_back(update.error);
      EXPECT_EQ(update.constraint_failed, !update.error.empty());
    }
  }
  // Alternately even and odd, then the stop token.
  static void expect_fitting(const std::vector<TokenId>& answer, size_t length) {
    ASSERT_THAT(answer, SizeIs(length + 1));
    for (size_t i = 0; i < length; ++i) EXPECT_EQ(answer[i] % 2, static_cast<int>(i % 2));
    EXPECT_EQ(answer.back(), kEndToken);
  }
  // The same request alone.
  std::vector<TokenId> alone(const Request& request) {
    make_scheduler();
    answers_.clear();
    const RequestId id = add(request);
    run_all();
    return answers_[{id, 0}];
  }

  std::map<Key, std::vector<TokenId>> answers_;
  std::map<Key, FinishReason> ends_;
  std::vector<std::string> errors_;
};

TEST_F(ConstrainedTest, StaysPipelined) {
  make_scheduler();
  add(constrained(0, 5, {.length = 9}));
  EXPECT_EQ(start().sequences(), 1);
  EXPECT_EQ(start().sequences(), 1);  // its previous token is in flight
  finish();
  EXPECT_EQ(start().sequences(), 1);
  run_all();
  expect_fitting(answers_[{1, 0}], 9);
  EXPECT_EQ((ends_[{1, 0}]), FinishReason::kStop);
}

TEST_F(ConstrainedTest, OutputDoesNotDependOnLoadOrPreemption) {
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(constrained(i, 10 + 3 * i, {.length = 20 + i}));
  requests.push_back({.prompt = numbers(3, 12), .max_tokens = 40, .ignore_eos = true});
  std::vector<std::vector<TokenId>> expected;
  for (const Request& request : requests) expected.push_back(alone(request));
  for (size_t i = 0; i < 6; ++i) expect_fitting(expected[i], 20 + i);
  for (const int pages : {200, 14}) {
    make_scheduler(pages);
    answers_.clear();
    std::vector<RequestId> ids;
    for (const Request& request : requests) ids.push_back(add(request));
    run_all();
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ((answers_[{ids[i], 0}]), expected[i]) << i;
    EXPECT_EQ(scheduler_->stats().preemptions > 0, pages == 14);
  }
}

TEST_F(ConstrainedTest, AFailedStepChangesNothing) {
  const Request request = constrained(1, 9, {.length = 15});
  const std::vector<TokenId> expected = alone(request);
  for (int steps = 0; steps < 6; ++steps) {
    make_scheduler();
    answers_.clear();
    const RequestId id = add(request);
    for (int i = 0; i < steps; ++i) {
      start();
      if (i > 0) finish();
    }
    runner_->fail_starts = 1;
    run_all();
    EXPECT_EQ((answers_[{id, 0}]), expected) << steps;
    EXPECT_EQ(scheduler_->stats().failed_steps, 1u);
  }
}

TEST_F(ConstrainedTest, EveryChoiceHasItsOwnState) {
  make_scheduler();
  Request request = constrained(2, 6, {.length = 12});
  request.n = 3;
  const RequestId id = add(request);
  run_all();
  for (int choice = 0; choice < 3; ++choice) expect_fitting(answers_[{id, choice}], 12);
  EXPECT_NE((answers_[{id, 0}]), (answers_[{id, 1}]));
}

TEST_F(ConstrainedTest, EndsWhereNoTokenIsAllowed) {
  make_scheduler();
  const RequestId dead_end = add(constrained(0, 5, {.length = 4, .closed = false}));
  Request past_the_stop = constrained(0, 5, {.length = 4});
  past_the_stop.ignore_eos = true;
  const RequestId past = add(past_the_stop);
  run_all();
  EXPECT_THAT((answers_[{dead_end, 0}]), SizeIs(4));
  EXPECT_EQ((ends_[{dead_end, 0}]), FinishReason::kStop);
  expect_fitting(answers_[{past, 0}], 4);
  EXPECT_EQ((ends_[{past, 0}]), FinishReason::kStop);
}

TEST_F(ConstrainedTest, MinTokensDoNotLeaveTheGrammar) {
  make_scheduler();
  Request request = constrained(0, 5, {.length = 4});
  request.min_tokens = 20;
  const RequestId id = add(request);
  run_all();
  expect_fitting(answers_[{id, 0}], 4);
}

TEST_F(ConstrainedTest, AFailingGrammarEndsOnlyItsOwnRequest) {
  make_scheduler();
  const RequestId broken = add(constrained(0, 5, {.length = 30, .fails_at = 3}));
  const RequestId other = add(constrained(4, 5, {.length = 8}));
  run_all();
  EXPECT_THAT((answers_[{broken, 0}]), SizeIs(3));
  EXPECT_EQ((ends_[{broken, 0}]), FinishReason::kError);
  EXPECT_THAT(errors_, testing::ElementsAre("the toy is broken"));
  expect_fitting(answers_[{other, 0}], 8);
}

TEST_F(ConstrainedTest, AbortLeavesNoDrawWaiting) {
  make_scheduler();
  const RequestId id = add(constrained(0, 5, {.length = 30}));
  start();
  const Batch batch = start();
  take(scheduler_->abort(id));
  EXPECT_TRUE(batch.sampling.at(0).mask->is_set());
  run_all();
  EXPECT_EQ((ends_[{id, 0}]), FinishReason::kAbort);
}

TEST_F(ConstrainedTest, StepsThatAreDroppedWaitForNothing) {
  make_scheduler();
  add(constrained(0, 5, {.length = 30}));
  start();
  const Batch batch = start();
  EXPECT_FALSE(batch.sampling.at(0).mask->is_set());
  scheduler_->release_masks();
  EXPECT_TRUE(batch.sampling.at(0).mask->is_set());
  runner_->drop();
  take(scheduler_->fail("as asked"));
  run_all();
  expect_fitting(answers_[{1, 0}], 30);
}

}  // namespace
}  // namespace octavo
