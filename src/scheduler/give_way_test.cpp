#include "scheduler/give_way.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>

#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

class GiveWayTest : public SchedulerFixture {
 protected:
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      tokens_[update.request] += update.tokens.size();
      if (update.finish) ended_.push_back(update.request);
    }
  }
  void run_step() {
    start();
    finish();
  }
  void run_until_ended(size_t count) {
    for (int steps = 0; ended_.size() < count; ++steps) {
      ASSERT_LT(steps, 1000);
      run_step();
    }
  }
  uint64_t preemptions() const { return scheduler_->stats().preemptions; }

  std::map<RequestId, size_t> tokens_;
  std::vector<RequestId> ended_;
};

TEST_F(GiveWayTest, TheOldestSequenceIsNotPreemptedForNewcomers) {
  make({.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 64}, 10);
  for (int i = 0; i < 4; ++i) add({.prompt = numbers(i, 5), .max_tokens = 2, .owner = "a"});
  const RequestId oldest = add({.prompt = numbers(9, 5), .max_tokens = 50, .owner = "a"});
  run_until_ended(4);
  const RequestId newcomer = add({.prompt = numbers(20, 5), .max_tokens = 40, .owner = "b"});
  run_all();
  EXPECT_GT(preemptions(), 0u);  // the pool cannot hold both
  EXPECT_EQ(ended_[4], oldest);
  EXPECT_EQ(ended_[5], newcomer);
}

TEST_F(GiveWayTest, ASequenceDrawsATokenBeforeItGivesWayAgain) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 4, .max_model_len = 100}, 100);
  add({.prompt = numbers(0, 4), .max_tokens = 60, .call = 1});
  const RequestId victim = add({.prompt = numbers(10, 20), .max_tokens = 60, .call = 1});
  for (int i = 0; i < 12; ++i) run_step();
  ASSERT_GT(tokens_[victim], 0u);
  add({.prompt = numbers(30, 2), .max_tokens = 1, .owner = "b"});
  run_until_ended(1);
  EXPECT_EQ(preemptions(), 1u);
  const size_t drawn = tokens_[victim];

  scheduler_->reset_prefix_cache();  // the victim is recomputed from its first token
  run_step();
  add({.prompt = numbers(35, 2), .max_tokens = 1, .owner = "c"});
  for (int i = 0; i < 3; ++i) run_step();
  EXPECT_EQ(tokens_[victim], drawn);
  EXPECT_EQ(preemptions(), 1u);
  run_until_ended(2);
  EXPECT_GT(tokens_[victim], drawn);
  EXPECT_EQ(preemptions(), 2u);
  run_all();
  EXPECT_EQ(tokens_[victim], 60u);
}

TEST_F(GiveWayTest, NothingIsPreemptedIfThatFreesTooFewPages) {
  make({.max_num_seqs = 8, .max_num_batched_tokens = 128, .max_model_len = 100}, 20);
  const RequestId large = add({.prompt = numbers(0, 80), .max_tokens = 15, .call = 1});
  for (int i = 0; i < 2; ++i) add({.prompt = numbers(i + 1, 5), .max_tokens = 24, .call = 2});
  run_step();
  ASSERT_EQ(scheduler_->stats().running, 3);
  // Its 8 pages are free only when the large one has ended.
  const RequestId newcomer = add({.prompt = numbers(20, 60), .max_tokens = 2, .call = 3});
  run_all();
  EXPECT_EQ(preemptions(), 0u);
  EXPECT_EQ(ended_[0], large);
  EXPECT_EQ(ended_[1], newcomer);
}

TEST_F(GiveWayTest, ASequenceWithoutRowsIsNotPreemptedForItsRows) {
  // With a state, chunks end at snapshots: here after each message, which ends with token 49.
  const StateSpec state{.heads = 2, .k_dim = 8, .v_dim = 4};
  make_of({SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}, state, state, state},
          {.max_num_batched_tokens = 16, .max_model_len = 100, .stop_token_ids = {49}}, 200);
  for (int i = 0; i < 4; ++i) add({.prompt = {i}, .max_tokens = 30, .ignore_eos = true, .call = 1});
  std::vector<TokenId> messages = numbers(5, 40);
  messages[7] = messages[15] = 49;
  add({.prompt = std::move(messages), .max_tokens = 30, .ignore_eos = true, .call = 1});
  EXPECT_EQ(start().rows(), 4 + 8);
  finish();
  add({.prompt = numbers(1, 45), .max_tokens = 30, .ignore_eos = true, .call = 2});
  EXPECT_EQ(start().rows(), 4 + 8 + 4);
  finish();
  add({.prompt = numbers(3, 5), .max_tokens = 30, .ignore_eos = true, .call = 3});
  const Batch batch = start();
  EXPECT_EQ(batch.rows(), 4 + 12);
  EXPECT_EQ(batch.sequences(), 5);  // without the one that ranks last
  EXPECT_EQ(preemptions(), 0u);
  run_all();
}

TEST_F(GiveWayTest, OnlyPagesThatNobodyElseHoldsBecomeAvailable) {
  PagePool pool(16);
  const std::vector<CacheSpec> layers = {SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}};
  const CachePlan plan = plan_cache(layers, 8);
  PrefixCache prefixes(plan, pool);
  MaskWorker masks(1);
  const auto shared = share_request(1, {.prompt = numbers(0, 20), .n = 3, .max_tokens = 2},
                                    {.max_model_len = 64, .vocab = kFakeVocab}, plan);
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Sequence*> all;
  for (int choice = 0; choice < 3; ++choice) {
    sequences.push_back(std::make_unique<Sequence>(shared, choice, prefixes, masks));
    Sequence& sequence = *sequences.back();
    all.push_back(&sequence);
    sequence.reuse_prefix();
    ASSERT_TRUE(sequence.cache().grow_to(20));
    sequence.cache().publish(sequence.tokens());
  }
  ASSERT_EQ(pool.referenced_pages(), 2 + 3);  // two full pages are shared
  EXPECT_EQ(pages_held_only_by(std::span(all).first(2), pool), 2);
  EXPECT_EQ(pages_held_only_by(all, pool), 5);
}

}  // namespace
}  // namespace octavo
