// Pooling requests in the scheduler: alone, in chunks, in batches, short of pages, failing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scheduler/pooled_rows.h"
#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

using testing::ElementsAre;

int asked(PooledRows& rows, int start, int end) {
  const PooledRows::Range range = rows.ask(start, end);
  return std::max(0, range.end - range.first);
}

// One row is all that the pooling needs.
void expect_done_with_a_row(PooledRows& rows) {
  rows.take(std::vector<float>{1, 2}, 1);
  EXPECT_TRUE(rows.done());
  EXPECT_THAT(rows.result(), ElementsAre(1, 2));
}

TEST(PooledRows, LastTokenPoolingNeedsOneRow) {
  PooledRows rows(Pooling::kLast, 5);
  EXPECT_EQ(rows.droppable(), 4);
  EXPECT_EQ(asked(rows, 0, 3), 0);
  EXPECT_EQ(asked(rows, 3, 5), 1);
  expect_done_with_a_row(rows);
}

TEST(PooledRows, FirstTokenPoolingNeedsOneRow) {
  PooledRows rows(Pooling::kFirst, 5);
  EXPECT_EQ(rows.droppable(), 0);
  EXPECT_EQ(asked(rows, 0, 3), 1);
  rows.ask_again();  // the step was lost
  EXPECT_EQ(asked(rows, 0, 5), 1);
  EXPECT_EQ(asked(rows, 3, 5), 0);
  expect_done_with_a_row(rows);
}

TEST(PooledRows, MeanPoolingNeedsEveryRowOnceEvenAfterARestart) {
  PooledRows rows(Pooling::kMean, 4);
  EXPECT_EQ(rows.droppable(), 0);
  EXPECT_EQ(rows.ask(0, 2).first, 0);
  rows.take(std::vector<float>{1, 10, 2, 20}, 2);
  EXPECT_EQ(rows.ask(2, 4).first, 2);
  rows.ask_again();  // the step was lost
  EXPECT_EQ(rows.droppable(), 2);
  EXPECT_EQ(rows.ask(0, 3).first, 2);
  rows.take(std::vector<float>{3, 30}, 1);
  EXPECT_FALSE(rows.done());
  EXPECT_EQ(rows.ask(3, 4).first, 3);
  rows.take(std::vector<float>{6, 60}, 1);
  EXPECT_THAT(rows.result(), ElementsAre(3, 30));
}

// Chunking must not change the sum: rows are added one by one.
TEST(PooledRows, TheSumIsInTheOrderOfTokens) {
  const std::vector<float> values = {1e8F, 1, 1, -1e8F, 1, 3};
  std::vector<std::vector<float>> results;
  for (const int chunk : {1, 2, 6}) {
    PooledRows rows(Pooling::kMean, 6);
    for (int start = 0; start < 6; start += chunk) {
      rows.ask(start, start + chunk);
      rows.take(std::span(values).subspan(static_cast<size_t>(start), static_cast<size_t>(chunk)),
                chunk);
    }
    results.push_back(rows.result());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

class PoolingTest : public SchedulerFixture {
 protected:
  RequestId pool(std::vector<TokenId> prompt, Pooling kind) {
    return add({.prompt = std::move(prompt), .pooling = kind});
  }
  void take(std::vector<Update> updates) override {
    for (Update& update : updates) {
      if (!update.finish) continue;
      EXPECT_FALSE(ends_.contains(update.request));
      ends_[update.request] = std::move(update);
    }
  }
  void expect_right_embedding(RequestId id) {
    const Request& request = requests_[id];
    EXPECT_EQ(ends_[id].finish, FinishReason::kStop) << id;
    EXPECT_TRUE(ends_[id].tokens.empty());
    EXPECT_EQ(ends_[id].embedding, model_->embedding(request.prompt, request.pooling)) << id;
  }
  void expect_right_embeddings() {
    for (const auto& [id, request] : requests_) {
      if (request.pooling != Pooling::kNone) expect_right_embedding(id);
    }
  }

  std::map<RequestId, Update> ends_;
};

TEST_F(PoolingTest, DrawsNothingAndReturnsOnlyTheNeededRows) {
  make({.max_num_batched_tokens = 16, .max_model_len = 100}, 64);
  pool(numbers(0, 5), Pooling::kLast);
  pool(numbers(9, 14), Pooling::kMean);
  const Batch batch = start();
  EXPECT_THAT(batch.cu_seqlens_q, ElementsAre(0, 5, 16));
  EXPECT_THAT(batch.hidden_rows, ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_TRUE(batch.sampling.empty());
  EXPECT_THAT(start().hidden_rows, ElementsAre(0, 1, 2));
  finish();
  EXPECT_FALSE(scheduler_->next().has_value());  // no row after the last
  finish();
  expect_right_embeddings();
  EXPECT_EQ(scheduler_->stats().generated_tokens, 0u);
}

TEST_F(PoolingTest, ChunksAndNeighboursChangeNothing) {
  for (const int budget : {1, 3, 7, 64}) {
    make({.max_num_seqs = 4, .max_num_batched_tokens = budget, .max_model_len = 100}, 64);
    for (int i = 0; i < 12; ++i) {
      if (i % 3 == 0) add({.prompt = numbers(i, 6), .max_tokens = 9});
      pool(numbers(i * 5, 1 + i * 3), i % 2 == 0 ? Pooling::kMean : Pooling::kLast);
    }
    run_all();
    expect_right_embeddings();
    requests_.clear();
    ends_.clear();
    scheduler_.reset();
  }
}

TEST_F(PoolingTest, ATextMayFillTheContext) {
  make({.max_num_batched_tokens = 10, .max_model_len = 24}, 3);
  pool(numbers(0, 24), Pooling::kLast);
  pool(numbers(3, 24), Pooling::kMean);
  run_all();
  expect_right_embeddings();
}

TEST_F(PoolingTest, TheLastRowUsesThePrefixCacheAndTheMeanDoesNot) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  const RequestId mean = pool(numbers(0, 32), Pooling::kMean);
  run_all();
  const RequestId last = pool(numbers(0, 32), Pooling::kLast);
  const RequestId again = pool(numbers(0, 32), Pooling::kMean);
  run_all();
  EXPECT_EQ(ends_[mean].cached_tokens, 0);
  EXPECT_EQ(ends_[last].cached_tokens, 24);  // one row runs
  EXPECT_EQ(ends_[again].cached_tokens, 0);
  expect_right_embeddings();
}

TEST_F(PoolingTest, RunningOutOfPagesChangesNothing) {
  make({.max_num_batched_tokens = 12, .max_model_len = 64}, 12);
  for (int i = 0; i < 30; ++i) {
    add({.prompt = numbers(i * 7, 6), .max_tokens = 40});
    pool(numbers(i * 11, 40 + i % 20), i % 2 == 0 ? Pooling::kMean : Pooling::kLast);
  }
  run_all();
  expect_right_embeddings();
  EXPECT_GT(scheduler_->stats().preemptions, 0u);
  EXPECT_EQ(pool_->referenced_pages(), 0);
}

TEST_F(PoolingTest, AnAbortReleasesThePages) {
  make({.max_num_batched_tokens = 16, .max_model_len = 100}, 64);
  const RequestId id = pool(numbers(0, 60), Pooling::kMean);
  start();
  start();
  take(scheduler_->abort(id));
  EXPECT_EQ(ends_[id].finish, FinishReason::kAbort);
  EXPECT_TRUE(ends_[id].embedding.empty());
  finish();
  finish();
  EXPECT_EQ(pool_->referenced_pages(), 0);
  EXPECT_TRUE(scheduler_->idle());
}

TEST_F(PoolingTest, AWindowReleasesThePagesBeforeIt) {
  make({.max_num_batched_tokens = 8, .max_model_len = 1000}, 8, 16);
  pool(numbers(0, 300), Pooling::kMean);
  pool(numbers(2, 300), Pooling::kLast);
  run_all();
  expect_right_embeddings();
}

// Rows read before the failure count; those of the failed steps are requested again.
TEST_F(PoolingTest, AfterAFailedStepAllSequencesAreRecomputed) {
  make({.max_num_batched_tokens = 20, .max_model_len = 100}, 64);
  for (int i = 0; i < 3; ++i) pool(numbers(i * 3, 30), Pooling::kMean);
  pool(numbers(17, 30), Pooling::kLast);
  start();
  finish();
  runner_->fail_starts = 1;
  start();
  start();
  finish();
  EXPECT_EQ(start().sequences(), 1);  // alone
  run_all();
  EXPECT_EQ(ends_.size(), 4u);
  expect_right_embeddings();
  EXPECT_EQ(scheduler_->stats().failed_steps, 1u);
}

TEST_F(PoolingTest, ASequenceThatFailsAgainEndsAndTheOthersContinue) {
  make({.max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  const RequestId bad = pool(numbers(0, 10), Pooling::kMean);
  const RequestId good = pool(numbers(5, 10), Pooling::kMean);
  runner_->fail_starts = 2;
  start();
  finish();
  start();
  finish();
  EXPECT_EQ(ends_[bad].finish, FinishReason::kError);
  EXPECT_FALSE(ends_[bad].error.empty());
  run_all();
  expect_right_embedding(good);
}

}  // namespace
}  // namespace octavo
