// The scheduler with several pipeline stages: failures, drafts and constraints change no output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "scheduler/testing/stages_fixture.h"
#include "scheduler/testing/toy_constraint.h"

namespace octavo {
namespace {

using testing::ElementsAre;

class StagesOutputTest : public StagesTest {};

// 64 requests on a pool that holds 8 of them.
TEST_F(StagesOutputTest, RunningOutOfPagesChangesNoOutput) {
  make_staged(3, {.max_num_batched_tokens = 64, .max_model_len = 64}, 8 * 8);
  for (int i = 0; i < 64; ++i) add({.prompt = numbers(i * 7, 20), .max_tokens = 44});
  run_filled();
  EXPECT_EQ(answers_.size(), 64u);
  expect_right_answers(44);
  EXPECT_GT(scheduler_->stats().preemptions, 0u);
  EXPECT_EQ(pool_->referenced_pages(), 0);
}

// The results of the steps before the failed one count.
TEST_F(StagesOutputTest, AfterAFailedStepItsSequencesRunOneStepAtATime) {
  make_staged(3, {.max_num_batched_tokens = 300, .max_model_len = 100});
  runner_->fails_in_order = true;
  for (int i = 0; i < 6; ++i) add({.prompt = numbers(i * 3, 10), .max_tokens = 12});
  EXPECT_THAT(fill(), ElementsAre(60));
  finish();
  EXPECT_THAT(fill(), ElementsAre(2, 2, 2));
  finish();
  runner_->fail_starts = 1;
  start();
  const auto drawn = [&] {
    size_t tokens = 0;
    for (const auto& [key, answer] : answers_) tokens += answer.size();
    return tokens;
  };
  const size_t before = drawn();
  finish();
  finish();
  EXPECT_EQ(drawn(), before + 4);
  finish();
  EXPECT_EQ(scheduler_->stats().failed_steps, 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(start().sequences(), 1);
    EXPECT_FALSE(scheduler_->next().has_value());
    finish();
  }
  run_filled();
  expect_right_answers(12);
}

// The prompt takes several steps.
TEST_F(StagesOutputTest, AfterAFailedStepNoSecondStepIsQueued) {
  make_staged(3, {.max_num_seqs = 6, .max_num_batched_tokens = 30, .max_model_len = 100});
  add({.prompt = numbers(0, 35), .max_tokens = 4});
  add({.prompt = numbers(3, 35), .max_tokens = 4});
  runner_->fail_starts = 1;
  EXPECT_EQ(fill().size(), 4u);
  finish();
  EXPECT_EQ(scheduler_->stats().failed_steps, 1u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(start().sequences(), 1);
    EXPECT_FALSE(scheduler_->next().has_value());
    finish();
  }
  EXPECT_EQ(answers_.size(), 2u);
  run_filled();
  expect_right_answers(4);
}

TEST_F(StagesOutputTest, ASequenceThatFailsAgainEndsAndTheOthersContinue) {
  make_staged(2, {.max_num_batched_tokens = 64, .max_model_len = 100});
  for (int i = 0; i < 3; ++i) add({.prompt = numbers(i * 3, 10), .max_tokens = 12});
  runner_->fail_starts = 2;
  start();
  finish();
  start();
  finish();
  EXPECT_EQ(ends_[1], FinishReason::kError);
  run_filled();
  requests_.erase(1);
  expect_right_answers(12);
}

TEST_F(StagesOutputTest, StepsWithDraftsAreInFlightTogether) {
  for (const bool state : {false, true}) {
    SchedulerOptions options{.max_num_batched_tokens = 64,
                             .max_model_len = 100,
                             .speculation = {.most_drafts = 4, .most_rows = 64},
                             .pipeline_stages = 2};
    std::vector<CacheSpec> layers = {kOneHead};
    if (state) layers.push_back(kRecurrent);
    make_of(layers, options, 200, 100);
    for (int i = 0; i < 4; ++i) add({.prompt = numbers(i, 5), .max_tokens = 60});
    bool together = false;
    while (!scheduler_->idle()) {
      fill();
      const auto& steps = runner_->in_flight();
      together |=
          std::ranges::count_if(steps, [](const Batch& step) {
            return step.rows() > step.sequences() && step.sampling.size() == step.tokens.size();
          }) == 2;
      finish();
    }
    EXPECT_TRUE(together);
    EXPECT_GT(scheduler_->stats().accepted_tokens, 60u);
    EXPECT_LT(scheduler_->stats().steps, 100u);  // 120 without drafts
    expect_right_answers(60);
    forget();
    scheduler_.reset();
  }
}

TEST_F(StagesOutputTest, TheModelsOwnPredictionsAreDrafts) {
  make_staged(2, {.max_num_batched_tokens = 24,
                  .max_model_len = 100,
                  .speculation = {.most_drafts = 1, .most_rows = 24},
                  .predicts = true});
  for (int i = 0; i < 3; ++i) add({.prompt = numbers(i, 30), .max_tokens = 50});
  run_filled();
  EXPECT_EQ(scheduler_->stats().accepted_tokens, scheduler_->stats().draft_tokens);
  EXPECT_GT(scheduler_->stats().accepted_tokens, 60u);
  expect_right_answers(50);
}

TEST_F(StagesOutputTest, MasksAreFilledForEveryStep) {
  make_staged(3, {.max_num_batched_tokens = 48, .max_model_len = 100, .stop_token_ids = {7}});
  for (int i = 0; i < 5; ++i) {
    Request request{.prompt = numbers(i, 8), .max_tokens = 60};
    request.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
    request.constraint =
        std::make_shared<ToyConstraint>(ToyRules{.vocab = kFakeVocab, .stop = 7, .length = 20});
    add(request);
  }
  run_filled();
  for (const auto& [key, answer] : answers_) {
    ASSERT_EQ(answer.size(), 21u);
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(answer[i] % 2, static_cast<int>(i % 2));
    EXPECT_EQ(answer.back(), 7);
  }
}

TEST_F(StagesOutputTest, PooledPromptsFillAllStages) {
  make_staged(3, {.max_num_seqs = 3, .max_num_batched_tokens = 24, .max_model_len = 200});
  const RequestId mean = add({.prompt = numbers(0, 100), .pooling = Pooling::kMean});
  const RequestId last = add({.prompt = numbers(9, 100), .pooling = Pooling::kLast});
  EXPECT_THAT(fill(), ElementsAre(8, 8, 8, 8));
  run_filled();
  for (const RequestId id : {mean, last})
    EXPECT_EQ(embeddings_[id], model_->embedding(requests_[id].prompt, requests_[id].pooling));
}

// The same requests with one stage and with several.
TEST_F(StagesOutputTest, OutputDoesNotDependOnTheStages) {
  std::mt19937 random(11);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  uint64_t preemptions = 0;
  uint64_t accepted = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<Request> requests;
    for (int i = 0; i < 12; ++i) {
      Request& request = requests.emplace_back();
      request.prompt = numbers(draw(0, 6), draw(1, 50));
      request.max_tokens = draw(1, 60);
      request.sampling = {.temperature = draw(0, 1) == 1 ? 1.0F : 0.0F,
                          .seed = random(),
                          .repetition_penalty = draw(0, 3) == 0 ? 2.0F : 1.0F};
      request.n = draw(0, 5) == 0 ? 3 : 1;
      request.background = draw(0, 3) == 0;
    }
    std::map<std::pair<RequestId, int>, std::vector<TokenId>> alone;
    for (const int stages : {1, 2, 3, 4}) {
      forget();
      SchedulerOptions options{.max_num_seqs = 1 + round % 9,
                               .max_num_batched_tokens = 6 + round % 40,
                               .max_model_len = 100,
                               .stop_token_ids = {7},
                               .speculation = {.most_drafts = 5, .most_rows = 20},
                               .pipeline_stages = stages};
      std::vector<CacheSpec> layers = {kOneHead};
      SoftmaxSpec window = kOneHead;
      window.window = 12;
      if (round % 2 == 0) layers.push_back(window);
      if (round % 4 > 1) layers.push_back(kRecurrent);
      const int pages = (round % 3 == 0 ? 30 : 200) + (round % 4 > 1 ? 20 : 0);
      make_of(layers, options, pages, round % 5 == 0 ? std::nullopt : std::optional(60));
      runner_->fails_in_order = true;
      for (const Request& request : requests) add(request);
      if (round % 7 == 0) {
        fill();
        finish();
        runner_->fail_starts = 1;
      }
      run_filled();
      ASSERT_EQ(pool_->referenced_pages(), 0);
      if (stages == 1) {
        alone = answers_;
      } else {
        ASSERT_EQ(answers_, alone) << "round " << round << ", stages " << stages;
        preemptions += scheduler_->stats().preemptions;
        accepted += scheduler_->stats().accepted_tokens;
      }
      scheduler_.reset();
    }
  }
  EXPECT_GT(preemptions, 5u);
  EXPECT_GT(accepted, 500u);
}

}  // namespace
}  // namespace octavo
