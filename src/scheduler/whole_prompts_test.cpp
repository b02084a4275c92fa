// Encoders in the scheduler: all rows of a prompt run in one step, and nothing is cached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WholePromptsTest : public SchedulerFixture {
 protected:
  void make_encoder(SchedulerOptions options, int pages, int window = 0) {
    options.draws = false;
    options.enable_prefix_caching = false;
    options.whole_prompts = true;
    make(options, pages, window);
  }
  RequestId pool(std::vector<TokenId> prompt, Pooling kind = Pooling::kFirst, int second_text = 0,
                 bool background = false) {
    return add({.prompt = std::move(prompt),
                .second_text = second_text,
                .background = background,
                .pooling = kind});
  }
  void take(std::vector<Update> updates) override {
    for (Update& update : updates) {
      ASSERT_TRUE(update.finish);
      end_order_.push_back(update.request);
      EXPECT_TRUE(ends_.emplace(update.request, std::move(update)).second);
    }
  }
  void expect_right_embedding(RequestId id) {
    const Request& request = requests_[id];
    EXPECT_EQ(ends_[id].finish, FinishReason::kStop) << id;
    EXPECT_EQ(ends_[id].embedding,
              model_->whole_embedding(request.prompt, request.second_text, request.pooling))
        << id;
  }
  void expect_right_embeddings() {
    EXPECT_EQ(ends_.size(), requests_.size());
    for (const auto& [id, request] : requests_) expect_right_embedding(id);
    EXPECT_EQ(pool_->free_pages(), pool_->page_count());
  }

  std::map<RequestId, Update> ends_;
  std::vector<RequestId> end_order_;
};

TEST_F(WholePromptsTest, EveryRowSeesItsWholePrompt) {
  make_encoder({.max_num_batched_tokens = 16, .max_model_len = 16}, 64);
  pool(numbers(0, 5), Pooling::kFirst);
  pool(numbers(9, 3), Pooling::kMean);
  pool(numbers(9, 2), Pooling::kLast);
  const Batch batch = start();
  EXPECT_THAT(batch.cu_seqlens_q, ElementsAre(0, 5, 8, 10));
  EXPECT_THAT(batch.last_visible, ElementsAre(4, 4, 4, 4, 4, 2, 2, 2, 1, 1));
  EXPECT_THAT(batch.hidden_rows, ElementsAre(0, 5, 6, 7, 9));
  EXPECT_THAT(batch.token_types, IsEmpty());
  finish();
  expect_right_embeddings();
}

TEST_F(WholePromptsTest, TheSecondTextHasItsOwnType) {
  make_encoder({.max_num_batched_tokens = 16, .max_model_len = 16}, 64);
  pool(numbers(0, 2));
  pool(numbers(0, 4), Pooling::kFirst, 3);
  pool(numbers(0, 3));
  EXPECT_THAT(start().token_types, ElementsAre(0, 0, 0, 0, 0, 1, 0, 0, 0));
  finish();
  expect_right_embeddings();
  EXPECT_NE(ends_[2].embedding, model_->whole_embedding(requests_[2].prompt, 2, Pooling::kFirst));
}

TEST_F(WholePromptsTest, APromptThatDoesNotFitWaitsAndIsNotOvertaken) {
  make_encoder({.max_num_batched_tokens = 16, .max_model_len = 16}, 64);
  pool(numbers(0, 5));
  const RequestId longer = pool(numbers(9, 14), Pooling::kMean);
  for (int i = 0; i < 6; ++i) pool(numbers(i, 2));
  EXPECT_THAT(start().cu_seqlens_q, ElementsAre(0, 5));
  EXPECT_THAT(start().cu_seqlens_q, ElementsAre(0, 14, 16));  // while the first step runs
  finish();
  finish();
  EXPECT_EQ(end_order_[1], longer);
  EXPECT_THAT(start().cu_seqlens_q, ElementsAre(0, 2, 4, 6, 8, 10));
  finish();
  expect_right_embeddings();
}

TEST_F(WholePromptsTest, NeighboursAndBudgetsChangeNothing) {
  for (const int budget : {20, 33, 64}) {
    make_encoder({.max_num_seqs = 4, .max_num_batched_tokens = budget, .max_model_len = 20}, 24,
                 /*window=*/6);
    for (int i = 0; i < 40; ++i) {
      const Pooling kind = i % 3 == 0   ? Pooling::kMean
                           : i % 3 == 1 ? Pooling::kLast
                                        : Pooling::kFirst;
      const int length = 1 + i * 7 % 20;
      pool(numbers(i * 5, length), kind, i % 4 == 0 ? length / 2 : 0, i % 5 == 0);
    }
    run_all();
    expect_right_embeddings();
    requests_.clear();
    ends_.clear();
    scheduler_.reset();
  }
}

TEST_F(WholePromptsTest, NothingIsCached) {
  make_encoder({.max_num_batched_tokens = 64, .max_model_len = 64}, 64);
  pool(numbers(0, 32));
  run_all();
  EXPECT_EQ(pool_->cached_pages(), 0);
  pool(numbers(0, 32), Pooling::kLast);
  EXPECT_EQ(start().rows(), 32);
  finish();
  EXPECT_EQ(ends_[2].cached_tokens, 0);
  expect_right_embeddings();
}

TEST_F(WholePromptsTest, ALongBackgroundPromptRunsBesideOthers) {
  make_encoder({.max_num_batched_tokens = 32, .max_model_len = 32}, 64);
  const RequestId slow = pool(numbers(3, 30), Pooling::kMean, 0, /*background=*/true);
  for (int i = 0; i < 40 && !ends_.contains(slow); ++i) {
    pool(numbers(i, 2));
    start();
    finish();
  }
  EXPECT_TRUE(ends_.contains(slow));
  run_all();
  expect_right_embeddings();
}

// The step in flight of an aborted request still uses pages, so that the next one gets none although
// nothing else runs, and a later one takes those that are left.
TEST_F(WholePromptsTest, PreemptionChangesNothing) {
  make_encoder({.max_num_batched_tokens = 64, .max_model_len = 64}, 8);
  const RequestId aborted = pool(numbers(0, 48));
  start();
  take(scheduler_->abort(aborted));
  requests_.erase(aborted);
  ends_.erase(aborted);
  pool(numbers(5, 60), Pooling::kMean);
  pool(numbers(7, 9), Pooling::kMean);
  EXPECT_THAT(start().cu_seqlens_q, ElementsAre(0, 9));
  finish();
  EXPECT_FALSE(scheduler_->next().has_value());
  EXPECT_EQ(scheduler_->stats().preemptions, 1u);
  run_all();
  expect_right_embeddings();
}

TEST_F(WholePromptsTest, AfterAFailedStepAllPromptsAreRecomputed) {
  make_encoder({.max_num_batched_tokens = 20, .max_model_len = 20}, 64);
  for (int i = 0; i < 4; ++i) pool(numbers(i * 3, 10), Pooling::kMean, i);
  runner_->fail_starts = 1;
  start();
  start();
  finish();
  EXPECT_EQ(start().sequences(), 1);  // alone
  run_all();
  expect_right_embeddings();
  EXPECT_EQ(scheduler_->stats().failed_steps, 1u);
}

TEST_F(WholePromptsTest, APromptThatFailsAgainEndsAndTheOthersContinue) {
  make_encoder({.max_num_batched_tokens = 64, .max_model_len = 64}, 64);
  const RequestId bad = pool(numbers(0, 10));
  const RequestId good = pool(numbers(5, 10));
  runner_->fail_starts = 2;
  start();
  finish();
  start();
  finish();
  EXPECT_EQ(ends_[bad].finish, FinishReason::kError);
  run_all();
  expect_right_embedding(good);
}

}  // namespace
}  // namespace octavo
