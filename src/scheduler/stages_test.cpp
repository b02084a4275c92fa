// The scheduler with several pipeline stages: which rows the steps in flight have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>

#include "scheduler/testing/stages_fixture.h"

namespace octavo {
namespace {

using testing::ElementsAre;

TEST_F(StagesTest, TheRowsOfAStepAreItsPartOfTheBudgetOrAGroup) {
  const auto rows = [](int seqs, int tokens, int stages) {
    return SchedulerOptions{
        .max_num_seqs = seqs, .max_num_batched_tokens = tokens, .pipeline_stages = stages}
        .step_rows();
  };
  EXPECT_EQ(rows(64, 512, 1), 512);
  EXPECT_EQ(rows(64, 512, 2), 256);
  EXPECT_EQ(rows(64, 32, 2), 32);
  EXPECT_EQ(rows(64, 32, 4), 16);
  EXPECT_EQ(rows(1, 2, 4), 1);
}

TEST_F(StagesTest, ASequenceWaitsForItsTokenBeforeItsNextRow) {
  make_staged(2, {.max_num_batched_tokens = 64, .max_model_len = 100});
  add({.prompt = numbers(0, 5), .max_tokens = 10});
  start();
  EXPECT_FALSE(scheduler_->next().has_value());
  finish();
  const Batch batch = start();
  EXPECT_EQ(batch.tokens[0], expected(1, 1)[0]);
  EXPECT_FALSE(refers_to_earlier_step(batch));
  run_all();
  expect_right_answers(10);
}

TEST_F(StagesTest, DecodingSequencesFormOneGroupPerStage) {
  make_staged(3, {.max_num_batched_tokens = 300, .max_model_len = 100});
  for (int i = 0; i < 7; ++i) add({.prompt = numbers(i, 5), .max_tokens = 30});
  EXPECT_THAT(fill(), ElementsAre(35));  // prompts need not be divided
  finish();
  EXPECT_THAT(fill(), ElementsAre(3, 2, 2));
  for (int i = 0; i < 6; ++i) {
    const int rows = runner_->in_flight().front().rows();
    finish();
    EXPECT_THAT(fill(), ElementsAre(rows));
  }
  run_filled();
  expect_right_answers(30);
}

TEST_F(StagesTest, GroupsBecomeEqualWhenSequencesEnd) {
  make_staged(2, {.max_num_batched_tokens = 300, .max_model_len = 100});
  for (int i = 0; i < 8; ++i) add({.prompt = numbers(i, 5), .max_tokens = i < 3 ? 4 : 40});
  fill();
  for (int i = 0; i < 20; ++i) {
    finish();
    fill();
  }
  ASSERT_EQ(ends_.size(), 3u);
  ASSERT_EQ(runner_->in_flight().size(), 2u);
  EXPECT_EQ(runner_->in_flight()[0].rows() + runner_->in_flight()[1].rows(), 5);
  EXPECT_LE(std::abs(runner_->in_flight()[0].rows() - runner_->in_flight()[1].rows()), 1);
}

// With 6 sequences and steps of 2 rows, the first ones would otherwise take all rows.
TEST_F(StagesTest, TheSequencesThatWaitedLongestGoFirst) {
  make_staged(2, {.max_num_seqs = 6, .max_num_batched_tokens = 2, .max_model_len = 100});
  for (int i = 0; i < 6; ++i) add({.prompt = numbers(i, 2), .max_tokens = 60});
  while (answers_.size() < 6) {
    fill();
    finish();
  }
  std::map<RequestId, size_t> before;
  for (RequestId id = 1; id <= 6; ++id) before[id] = answers_[{id, 0}].size();
  for (int i = 0; i < 30; ++i) {
    fill();
    finish();
  }
  for (RequestId id = 1; id <= 6; ++id) {
    const size_t drawn = answers_[{id, 0}].size() - before[id];
    EXPECT_GE(drawn, 8u) << id;
    EXPECT_LE(drawn, 12u) << id;
  }
  run_filled();
  expect_right_answers(60);
}

TEST_F(StagesTest, ALongPromptFillsAllStages) {
  make_staged(4, {.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 300});
  add({.prompt = numbers(0, 200), .max_tokens = 5});
  EXPECT_THAT(fill(), ElementsAre(16, 16, 16, 16, 16));
  EXPECT_THAT(runner_->in_flight().back().context_lens, ElementsAre(80));
  finish();
  EXPECT_THAT(fill(), ElementsAre(16));
  run_filled();
  expect_right_answers(5);
}

TEST_F(StagesTest, PromptChunksAndGroupsShareSteps) {
  make_staged(2, {.max_num_seqs = 8, .max_num_batched_tokens = 20, .max_model_len = 300});
  for (int i = 0; i < 4; ++i) add({.prompt = numbers(i, 2), .max_tokens = 20});
  fill();
  finish();
  add({.prompt = numbers(9, 100), .max_tokens = 20});
  fill();
  ASSERT_EQ(runner_->in_flight().size(), 3u);
  EXPECT_THAT(runner_->in_flight()[0].cu_seqlens_q, ElementsAre(0, 1, 2, 10));
  EXPECT_THAT(runner_->in_flight()[1].cu_seqlens_q, ElementsAre(0, 1, 2, 10));
  EXPECT_THAT(runner_->in_flight()[2].cu_seqlens_q,
              ElementsAre(0, 10));  // both groups are in flight
  run_filled();
  expect_right_answers(20);
}

// CachePlan::state_copies counts two steps in flight.
TEST_F(StagesTest, AStateAllowsTwoChunksInFlight) {
  SchedulerOptions options{
      .max_num_seqs = 4, .max_num_batched_tokens = 32, .max_model_len = 200, .pipeline_stages = 4};
  make_of({kOneHead, kRecurrent, kRecurrent}, options, 200);
  add({.prompt = numbers(0, 100), .max_tokens = 5});
  EXPECT_EQ(fill().size(), 2u);
  finish();
  EXPECT_EQ(fill().size(), 1u);
  add({.prompt = numbers(7, 100), .max_tokens = 5});
  EXPECT_EQ(fill().size(), 2u);  // of the other sequence
  run_filled();
  expect_right_answers(5);
}

// The pool has just the pages that one sequence is promised.
TEST_F(StagesTest, SnapshotsOfStatesFitIntoThePoolWithChunksInFlight) {
  for (const int stages : {2, 4}) {
    SchedulerOptions options{.max_num_seqs = 4,
                             .max_num_batched_tokens = 32,
                             .max_model_len = 200,
                             .pipeline_stages = stages};
    make_of({kOneHead, kRecurrent, kRecurrent}, options, 400);
    const int pages = plan_.pages_held(200, 32);
    make_of({kOneHead, kRecurrent, kRecurrent}, options, pages);
    add({.prompt = numbers(0, 150), .max_tokens = 50});
    run_filled();
    expect_right_answers(50);
    forget();
    scheduler_.reset();
  }
}

// CacheGroup::pages_held counts two steps of max_num_batched_tokens.
TEST_F(StagesTest, TheRowsOfASequenceInFlightAreLimited) {
  make_staged(4, {.max_num_batched_tokens = 8, .max_model_len = 1000}, 64, 16);
  add({.prompt = numbers(0, 300), .max_tokens = 50});
  EXPECT_THAT(fill(), ElementsAre(8, 8));
  const int held = plan_.pages_held(1000, 8);
  while (!scheduler_->idle()) {
    EXPECT_LE(pool_->referenced_pages(), held);
    finish();
    fill();
  }
  expect_right_answers(50);
}

TEST_F(StagesTest, AWindowReleasesThePagesBeforeTheOldestStep) {
  for (const int stages : {2, 3, 4}) {
    make_staged(stages, {.max_num_seqs = 2, .max_num_batched_tokens = 16, .max_model_len = 1000}, 9,
                16);
    add({.prompt = numbers(0, 300), .max_tokens = 50});
    run_filled();
    expect_right_answers(50);
    forget();
    scheduler_.reset();
  }
}

TEST_F(StagesTest, AnAbortReleasesThePagesWhenItsStepsAreComplete) {
  make_staged(3, {.max_num_seqs = 4, .max_num_batched_tokens = 24, .max_model_len = 100});
  const RequestId id = add({.prompt = numbers(0, 90), .max_tokens = 5});
  EXPECT_EQ(fill().size(), 4u);
  take(scheduler_->abort(id));
  EXPECT_EQ(ends_[id], FinishReason::kAbort);
  EXPECT_EQ(pool_->referenced_pages(), 4);
  for (int i = 0; i < 3; ++i) finish();
  EXPECT_EQ(pool_->referenced_pages(), 4);
  finish();
  EXPECT_EQ(pool_->referenced_pages(), 0);
  EXPECT_TRUE(scheduler_->idle());
}

// Another step would be between two steps of the chat in every stage.
TEST_F(StagesTest, BackgroundRequestsLeaveThePipelineShort) {
  make_staged(2, {.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 300}, 300);
  constexpr uint64_t kChat = 77;
  add({.prompt = numbers(0, 5), .sampling = {.seed = kChat}, .max_tokens = 100});
  fill();
  finish();
  for (int i = 0; i < 4; ++i)
    add({.prompt = numbers(i, 200), .max_tokens = 20, .background = true});
  int background_rows = 0;
  for (int i = 0; i < 60; ++i) {
    fill();
    ASSERT_LE(runner_->in_flight().size(), 2u);
    const Batch& step = runner_->in_flight().front();
    const bool has_chat = std::ranges::count(step.sampling, kChat, &RowSampling::seed) > 0;
    background_rows += step.rows() - (has_chat ? 1 : 0);
    scheduler_->step_took(1 + 0.05 * step.rows());
    finish();
  }
  EXPECT_GT(background_rows, 0);
  EXPECT_LT(background_rows, 300);
  run_filled();
}

// A pipeline in virtual time: a stage takes 10 for a step and 0.1 for each row, and a result comes 1
// after the last stage has ended.
TEST_F(StagesTest, AllStagesAreBusy) {
  for (const int stages : {2, 3, 4}) {
    make_staged(stages, {.max_num_seqs = 40, .max_num_batched_tokens = 400, .max_model_len = 400},
                2000);
    for (int i = 0; i < 30; ++i) add({.prompt = numbers(i, 20 + 5 * i), .max_tokens = 60 + 5 * i});
    std::vector<double> free(static_cast<size_t>(stages));
    std::deque<double> results;
    double now = 0;
    double work = 0;
    while (!scheduler_->idle()) {
      for (const int rows : fill()) {
        const double seconds = 10 + 0.1 * rows;
        double end = now;
        for (double& stage : free) end = stage = std::max(end, stage) + seconds;
        results.push_back(end + 1);
        work += seconds;
      }
      now = results.front();
      results.pop_front();
      finish();
    }
    EXPECT_GT(work / now, 0.85) << stages;
    forget();
    scheduler_.reset();
  }
}

}  // namespace
}  // namespace octavo
