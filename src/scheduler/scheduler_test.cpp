#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

using testing::ElementsAre;

class SchedulerTest : public SchedulerFixture {
 protected:
  using Key = std::pair<RequestId, int>;

  // Attention, and three layers whose states take three pages per sequence.
  void make_hybrid(SchedulerOptions options, int pages) {
    const StateSpec state{.heads = 2, .k_dim = 8, .v_dim = 4};
    make_of({SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}, state, state, state}, options,
            pages);
  }
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      const Key key{update.request, update.choice};
      auto& answer = answers_[key];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.cached_tokens) cached_[key] = *update.cached_tokens;
      if (update.finish) {
        ends_[key] = *update.finish;
        end_order_.push_back(update.request);
      }
      prompt_logprobs_[key] += static_cast<int>(update.prompt_logprobs.size());
    }
  }
  // The output of the request when run alone.
  std::vector<TokenId> expected(RequestId id, int choice, size_t count) {
    const Request& request = requests_[id];
    std::vector<TokenId> tokens = request.prompt;
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(
          model_->next_token(tokens, {.temperature = request.sampling.temperature,
                                      .seed = request.sampling.seed,
                                      .choice = static_cast<uint32_t>(choice),
                                      .position = static_cast<uint32_t>(tokens.size())}));
    }
    return {tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()), tokens.end()};
  }
  void expect_right_answers(size_t count) {
    for (const auto& [key, answer] : answers_)
      EXPECT_EQ(answer, expected(key.first, key.second, count)) << key.first;
  }

  std::map<Key, std::vector<TokenId>> answers_;
  std::map<Key, int> cached_, prompt_logprobs_;
  std::map<Key, FinishReason> ends_;
  std::vector<RequestId> end_order_;
};

TEST_F(SchedulerTest, DecodeRowsComeFirstAndChunksFillTheBudget) {
  make({.max_num_batched_tokens = 16, .max_model_len = 100}, 64);
  add({.prompt = numbers(0, 5), .max_tokens = 20});
  EXPECT_THAT(start().cu_seqlens_q, ElementsAre(0, 5));
  add({.prompt = numbers(10, 40), .max_tokens = 20});
  EXPECT_THAT(start().cu_seqlens_q, ElementsAre(0, 1, 16));  // before the first token is read
  finish();
  EXPECT_THAT(start().context_lens, ElementsAre(7, 30));
  finish();
  EXPECT_THAT(start().context_lens, ElementsAre(8, 40));
  run_all();
  expect_right_answers(20);
}

TEST_F(SchedulerTest, NoMoreSequencesRunThanAllowed) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  for (int i = 0; i < 3; ++i) add({.prompt = numbers(i, 5), .max_tokens = 4});
  EXPECT_EQ(start().sequences(), 2);
  run_all();
  EXPECT_EQ(answers_.size(), 3u);
  expect_right_answers(4);
}

TEST_F(SchedulerTest, EndsAtItsLengthWithoutASurplusStep) {
  make({.max_num_batched_tokens = 64, .max_model_len = 12}, 8);
  const RequestId by_length = add({.prompt = numbers(0, 5), .max_tokens = 3});
  const RequestId by_context = add({.prompt = numbers(1, 8), .max_tokens = 30});
  run_all();
  EXPECT_EQ(answers_[Key(by_length, 0)].size(), 3u);
  EXPECT_EQ(answers_[Key(by_context, 0)].size(), 4u);
  EXPECT_EQ(ends_[Key(by_context, 0)], FinishReason::kLength);
  EXPECT_EQ(scheduler_->stats().decode_tokens, 2u + 3u);
}

TEST_F(SchedulerTest, StopTokensEndTheOutput) {
  make({.max_num_batched_tokens = 64, .max_model_len = 200}, 64);
  Request request{.prompt = numbers(0, 5), .max_tokens = 20};
  requests_[1] = request;
  const auto tokens = expected(1, 0, 20);
  request.stop_token_ids = {tokens[6]};
  add(request);
  run_all();
  EXPECT_EQ(answers_[Key(1, 0)].back(), tokens[6]);
  EXPECT_EQ(ends_[Key(1, 0)], FinishReason::kStop);
  EXPECT_LE(answers_[Key(1, 0)].size(), 7u);
}

TEST_F(SchedulerTest, LowerPriorityValuesGoFirst) {
  make({.max_num_seqs = 1,
        .max_num_batched_tokens = 64,
        .max_model_len = 100,
        .policy = SchedulingPolicy::kPriority},
       64);
  add({.prompt = numbers(0, 5), .max_tokens = 2, .priority = 1});
  add({.prompt = numbers(9, 7), .max_tokens = 2, .priority = 0});
  EXPECT_THAT(start().context_lens, ElementsAre(7));
  run_all();
}

TEST_F(SchedulerTest, ANewCallGoesBeforeTheTailOfALongOne) {
  make({.max_num_seqs = 1, .max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  for (int i = 0; i < 5; ++i) add({.prompt = numbers(i, 5), .max_tokens = 2, .call = 1});
  add({.prompt = numbers(9, 5), .max_tokens = 2, .call = 2});
  run_all();
  EXPECT_THAT(end_order_, ElementsAre(1, 6, 2, 3, 4, 5));
  expect_right_answers(2);
}

TEST_F(SchedulerTest, OwnersTakeTurns) {
  make({.max_num_seqs = 1, .max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  for (int i = 0; i < 5; ++i) add({.prompt = numbers(i, 5), .max_tokens = 2, .owner = "a"});
  for (int i = 0; i < 2; ++i) add({.prompt = numbers(i, 5), .max_tokens = 2, .owner = "b"});
  run_all();
  EXPECT_THAT(end_order_, ElementsAre(1, 6, 2, 7, 3, 4, 5));
}

TEST_F(SchedulerTest, ChoicesTakeTurnsAsOneCall) {
  make({.max_num_seqs = 1, .max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  add({.prompt = numbers(0, 5), .n = 4, .max_tokens = 2});
  add({.prompt = numbers(9, 5), .max_tokens = 2});
  run_all();
  EXPECT_THAT(end_order_, ElementsAre(1, 2, 1, 1, 1));
}

TEST_F(SchedulerTest, ACallWithManyRunningSequencesGivesASlotToANewCall) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 64, .max_model_len = 100}, 200);
  for (int i = 0; i < 8; ++i) add({.prompt = numbers(i, 5), .max_tokens = 60, .call = 1});
  for (int i = 0; i < 3; ++i) {
    start();
    finish();
  }
  const RequestId late = add({.prompt = numbers(20, 5), .max_tokens = 2, .call = 2});
  run_all();
  EXPECT_EQ(end_order_.front(), late);
  EXPECT_EQ(scheduler_->stats().preemptions, 1u);
  for (RequestId id = 1; id <= 8; ++id) EXPECT_EQ(answers_[Key(id, 0)], expected(id, 0, 60)) << id;
  EXPECT_EQ(answers_[Key(late, 0)], expected(late, 0, 2));
}

TEST_F(SchedulerTest, ACallWithManyRunningSequencesGivesPagesToANewCall) {
  make({.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 64}, 16);
  for (int i = 0; i < 4; ++i) add({.prompt = numbers(i, 5), .max_tokens = 50, .call = 1});
  for (int i = 0; i < 20; ++i) {
    start();
    finish();
  }
  ASSERT_TRUE(end_order_.empty());
  const RequestId late = add({.prompt = numbers(20, 30), .max_tokens = 2, .call = 2});
  run_all();
  EXPECT_EQ(end_order_.front(), late);
  for (RequestId id = 1; id <= 4; ++id) EXPECT_EQ(answers_[Key(id, 0)], expected(id, 0, 50)) << id;
}

TEST_F(SchedulerTest, ACallWhoseRowsFillEveryStepGivesRowsToANewCall) {
  make({.max_num_seqs = 4, .max_num_batched_tokens = 4, .max_model_len = 100}, 200);
  for (int i = 0; i < 4; ++i) add({.prompt = numbers(i, 2), .max_tokens = 60, .call = 1});
  for (int i = 0; i < 6; ++i) {
    start();
    finish();
  }
  EXPECT_EQ(start().rows(), 4);  // all decode
  const RequestId late = add({.prompt = numbers(20, 5), .max_tokens = 2, .call = 2});
  run_all();
  EXPECT_EQ(end_order_.front(), late);
  EXPECT_EQ(scheduler_->stats().preemptions, 1u);
  for (RequestId id = 1; id <= 4; ++id) EXPECT_EQ(answers_[Key(id, 0)], expected(id, 0, 60)) << id;
}

TEST_F(SchedulerTest, SingleSequencesAreInterruptedOnlyForAnotherOwner) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 100}, 200);
  const auto ask = [&](const char* owner, int tokens) {
    return add({.prompt = numbers(7, 5), .max_tokens = tokens, .owner = owner});
  };
  ask("a", 40);
  ask("a", 40);
  start();
  finish();
  ask("a", 2);
  start();
  finish();
  start();
  finish();
  EXPECT_EQ(scheduler_->stats().preemptions, 0u);
  const RequestId other = ask("b", 2);
  run_all();
  EXPECT_EQ(end_order_.front(), other);
  EXPECT_EQ(scheduler_->stats().preemptions, 1u);
}

TEST_F(SchedulerTest, NamespacesShareNoPrefix) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  CacheNamespace mine = {};
  mine[0] = 1;
  add({.prompt = numbers(0, 20), .max_tokens = 2});
  run_all();
  const RequestId first = add({.prompt = numbers(0, 20), .max_tokens = 2, .cache_namespace = mine});
  run_all();
  const RequestId second =
      add({.prompt = numbers(0, 20), .max_tokens = 2, .cache_namespace = mine});
  run_all();
  EXPECT_EQ(cached_[Key(first, 0)], 0);
  EXPECT_EQ(cached_[Key(second, 0)], 16);
  expect_right_answers(2);
}

TEST_F(SchedulerTest, ChoicesShareThePromptsFullPages) {
  for (const bool caching : {true, false}) {
    make({.max_num_batched_tokens = 64, .max_model_len = 100, .enable_prefix_caching = caching},
         64);
    const RequestId id =
        add({.prompt = numbers(0, 20), .sampling = {.temperature = 1}, .n = 3, .max_tokens = 6});
    const Batch batch = start();
    EXPECT_THAT(batch.cu_seqlens_q, ElementsAre(0, 20, 24, 28));  // the tail is recomputed
    const BlockTable& table = batch.block_tables[0];
    EXPECT_EQ(table.pages[1], table.pages[4]);
    EXPECT_NE(table.pages[2], table.pages[5]);
    run_all();
    expect_right_answers(6);
    EXPECT_NE(answers_[Key(id, 0)], answers_[Key(id, 1)]);
    answers_.clear();
    scheduler_.reset();
  }
}

TEST_F(SchedulerTest, WithoutPrefixCachingRequestsShareNothing) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100, .enable_prefix_caching = false}, 64);
  const RequestId first = add({.prompt = numbers(0, 20), .max_tokens = 2});
  const RequestId second = add({.prompt = numbers(0, 20), .max_tokens = 2});
  run_all();
  EXPECT_EQ(cached_[Key(first, 0)], 0);
  EXPECT_EQ(cached_[Key(second, 0)], 0);
}

TEST_F(SchedulerTest, ASharedPrefixIsComputedOnceAndReported) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  const RequestId first = add({.prompt = numbers(0, 20), .max_tokens = 2});
  run_all();
  const RequestId second = add({.prompt = numbers(0, 17), .max_tokens = 2});
  const RequestId salted = add({.prompt = numbers(0, 17), .max_tokens = 2, .cache_salt = "x"});
  run_all();
  EXPECT_EQ(cached_[Key(first, 0)], 0);
  EXPECT_EQ(cached_[Key(second, 0)], 16);
  EXPECT_EQ(cached_[Key(salted, 0)], 0);
  EXPECT_EQ(scheduler_->stats().prefix_hits, 16u);
  scheduler_->reset_prefix_cache();
  const RequestId third = add({.prompt = numbers(0, 17), .max_tokens = 2});
  run_all();
  EXPECT_EQ(cached_[Key(third, 0)], 0);
  expect_right_answers(2);
}

TEST_F(SchedulerTest, PromptLogprobsComputeEveryRowOnce) {
  make({.max_num_batched_tokens = 7, .max_model_len = 100}, 64);
  add({.prompt = numbers(0, 20), .max_tokens = 2});
  run_all();
  const RequestId id =
      add({.prompt = numbers(0, 20), .sampling = {.prompt_logprobs = 2}, .max_tokens = 2});
  run_all();
  EXPECT_EQ(cached_[Key(id, 0)], 0);
  EXPECT_EQ(prompt_logprobs_[Key(id, 0)], 19);
}

// 64 requests on a pool that holds 8 of them.
TEST_F(SchedulerTest, RunningOutOfPagesChangesNoOutput) {
  make({.max_num_batched_tokens = 64, .max_model_len = 64}, 8 * 8);
  for (int i = 0; i < 64; ++i) add({.prompt = numbers(i * 7, 20), .max_tokens = 44});
  run_all();
  EXPECT_EQ(answers_.size(), 64u);
  expect_right_answers(44);
  EXPECT_GT(scheduler_->stats().preemptions, 0u);
  EXPECT_EQ(pool_->referenced_pages(), 0);
}

TEST_F(SchedulerTest, AnAbortReleasesThePagesWithinTwoSteps) {
  make({.max_num_batched_tokens = 16, .max_model_len = 100}, 64);
  const RequestId waiting_long = add({.prompt = numbers(0, 60), .max_tokens = 20});
  const RequestId queued = add({.prompt = numbers(5, 60), .max_tokens = 20});
  start();
  start();
  take(scheduler_->abort(queued));
  EXPECT_EQ(ends_[Key(queued, 0)], FinishReason::kAbort);
  take(scheduler_->abort(waiting_long));
  EXPECT_EQ(pool_->referenced_pages(), 4);  // two steps still write them
  finish();
  finish();
  EXPECT_EQ(pool_->referenced_pages(), 0);
  EXPECT_TRUE(scheduler_->idle());
  EXPECT_TRUE(scheduler_->abort(queued).empty());
}

TEST_F(SchedulerTest, AbortingOneChoiceKeepsTheOthers) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  const RequestId id = add({.prompt = numbers(0, 9), .n = 3, .max_tokens = 6});
  start();
  take(scheduler_->abort(id, 1));
  run_all();
  EXPECT_EQ(ends_[Key(id, 1)], FinishReason::kAbort);
  EXPECT_EQ(answers_[Key(id, 0)], expected(id, 0, 6));
  EXPECT_EQ(answers_[Key(id, 2)], expected(id, 2, 6));
}

TEST_F(SchedulerTest, AWindowReleasesThePagesBeforeIt) {
  make({.max_num_batched_tokens = 8, .max_model_len = 1000}, 8, 16);
  add({.prompt = numbers(0, 300), .max_tokens = 50});
  run_all();
  expect_right_answers(50);
}

TEST_F(SchedulerTest, AfterAFailedStepAllSequencesAreRecomputed) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  for (int i = 0; i < 3; ++i) add({.prompt = numbers(i * 3, 10), .max_tokens = 12});
  start();
  finish();
  runner_->fail_starts = 1;
  start();
  start();
  finish();
  EXPECT_EQ(start().sequences(), 1);  // alone
  run_all();
  expect_right_answers(12);
  EXPECT_EQ(scheduler_->stats().failed_steps, 1u);
}

TEST_F(SchedulerTest, ASequenceThatFailsAgainEndsAndTheOthersContinue) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  for (int i = 0; i < 3; ++i) add({.prompt = numbers(i * 3, 10), .max_tokens = 12});
  runner_->fail_starts = 2;
  start();
  finish();
  start();
  finish();
  EXPECT_EQ(ends_[Key(1, 0)], FinishReason::kError);
  run_all();
  EXPECT_EQ(ends_[Key(2, 0)], FinishReason::kLength);
  answers_.erase(Key(1, 0));
  EXPECT_EQ(answers_.size(), 2u);
  expect_right_answers(12);
}

TEST_F(SchedulerTest, AStateIsReusedAtTheLastFullPageOfTheSamePrompt) {
  make_hybrid({.max_num_batched_tokens = 64, .max_model_len = 100}, 200);
  add({.prompt = numbers(0, 30), .max_tokens = 3});
  EXPECT_THAT(start().context_lens, ElementsAre(24));  // the chunk ends where the state is kept
  run_all();
  add({.prompt = numbers(0, 30), .n = 2, .max_tokens = 3});
  run_all();
  EXPECT_EQ((cached_[{2, 0}]), 24);
  EXPECT_EQ((cached_[{2, 1}]), 24);
  expect_right_answers(3);
}

TEST_F(SchedulerTest, AStateIsReusedAfterASharedMessage) {
  make_hybrid({.max_num_batched_tokens = 64, .max_model_len = 100, .stop_token_ids = {49}}, 200);
  for (int i = 0; i < 3; ++i) {
    std::vector<TokenId> prompt = numbers(0, 20);
    prompt.push_back(49);  // ends the system message
    for (int j = 0; j < 20; ++j) prompt.push_back(5 + i + j);
    add({.prompt = std::move(prompt), .max_tokens = 3, .ignore_eos = true});
    run_all();
    EXPECT_EQ((cached_[{static_cast<RequestId>(i) + 1, 0}]), i == 0 ? 0 : 16);
  }
  expect_right_answers(3);
}

TEST_F(SchedulerTest, StatesAreNotReadInTheStepThatWritesThem) {
  make_hybrid({.max_num_batched_tokens = 200, .max_model_len = 100}, 200);
  add({.prompt = numbers(0, 30), .max_tokens = 8});
  add({.prompt = numbers(0, 30), .max_tokens = 8});
  EXPECT_EQ(start().sequences(), 2);
  run_all();
  expect_right_answers(8);
}

TEST_F(SchedulerTest, StatesAreRecomputedWhenPagesRunOut) {
  make_hybrid({.max_num_seqs = 8, .max_num_batched_tokens = 32, .max_model_len = 60}, 28);
  for (int i = 0; i < 6; ++i) add({.prompt = numbers(i, 4), .max_tokens = 50});
  run_all();
  EXPECT_GT(scheduler_->stats().preemptions, 0u);
  expect_right_answers(50);
}

}  // namespace
}  // namespace octavo
