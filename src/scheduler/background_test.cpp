// Background requests in the scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {
namespace {

class BackgroundTest : public SchedulerFixture {
 protected:
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      auto& answer = answers_[update.request];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.finish) ended_.push_back(update.request);
    }
  }
  // As EngineLoop: a step takes a second, and `cost` more for each background row.
  void run_step(double cost) {
    const Batch batch = start();
    const int chats = static_cast<int>(chats_.size());
    const int background = std::max(0, batch.rows() - chats);
    most_background_ = std::max(most_background_, background);
    scheduler_->step_took(1 + cost * background);
    finish();
  }
  RequestId add_background(int first, int prompt, int max_tokens) {
    return add({.prompt = numbers(first, prompt), .max_tokens = max_tokens, .background = true});
  }
  RequestId add_chat(int first, int prompt, int max_tokens) {
    const RequestId id = add({.prompt = numbers(first, prompt), .max_tokens = max_tokens});
    chats_.insert(id);
    return id;
  }
  void expect_right_answers() {
    for (const auto& [id, answer] : answers_) {
      std::vector<TokenId> tokens = requests_[id].prompt;
      for (const TokenId token : answer) {
        EXPECT_EQ(token,
                  model_->next_token(tokens, {.position = static_cast<uint32_t>(tokens.size())}));
        tokens.push_back(token);
      }
      EXPECT_EQ(answer.size(), static_cast<size_t>(requests_[id].max_tokens));
    }
  }

  std::map<RequestId, std::vector<TokenId>> answers_;
  std::vector<RequestId> ended_;
  std::set<RequestId> chats_;
  int most_background_ = 0;
};

TEST_F(BackgroundTest, OtherRequestsGoFirstWhateverTheirPriority) {
  make({.max_num_seqs = 1,
        .max_num_batched_tokens = 64,
        .max_model_len = 100,
        .policy = SchedulingPolicy::kPriority},
       64);
  Request low{.prompt = numbers(0, 5), .max_tokens = 2, .priority = -5};
  low.background = true;
  const RequestId background = add(low);
  const RequestId chat = add({.prompt = numbers(9, 7), .max_tokens = 2, .priority = 5});
  run_all();
  EXPECT_THAT(ended_, testing::ElementsAre(chat, background));
}

TEST_F(BackgroundTest, TheyGiveTheirSlotAndPagesToAnotherRequestAtOnce) {
  make({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 100}, 13);
  add_background(0, 40, 20);
  add_background(20, 40, 20);
  start();
  finish();
  start();
  finish();
  ASSERT_EQ(scheduler_->stats().running, 2);
  const RequestId chat = add_chat(9, 50, 10);
  for (int steps = 0; ended_.empty(); ++steps) {
    ASSERT_LT(steps, 14);  // preemption, one step of the prompt, ten tokens
    start();
    finish();
  }
  EXPECT_EQ(ended_.front(), chat);
  EXPECT_GT(scheduler_->stats().preemptions, 0u);
  run_all();
  expect_right_answers();
}

TEST_F(BackgroundTest, TheirPromptsDoNotDelayAChat) {
  make({.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 300}, 300);
  add_chat(0, 5, 200);
  run_step(0);
  for (int i = 0; i < 6; ++i) add_background(i, 200, 20);
  most_background_ = 0;
  for (int i = 0; i < 150; ++i) run_step(0.05);
  EXPECT_GT(most_background_, 0);
  EXPECT_LE(most_background_, 5);  // 25% longer
  run_all();
  expect_right_answers();
}

TEST_F(BackgroundTest, WithoutOtherRequestsTheyFillTheStep) {
  make({.max_num_seqs = 8, .max_num_batched_tokens = 64, .max_model_len = 300}, 300);
  for (int i = 0; i < 6; ++i) add_background(i, 200, 20);
  EXPECT_EQ(start().rows(), 64);
  finish();
  run_all();
  expect_right_answers();
}

TEST_F(BackgroundTest, TurnsOfAnOwnersOtherRequestsAreNotAffected) {
  make({.max_num_seqs = 1, .max_num_batched_tokens = 64, .max_model_len = 100}, 64);
  Request batch{.prompt = numbers(0, 5), .max_tokens = 2, .owner = "a"};
  batch.background = true;
  for (int i = 0; i < 5; ++i) add(batch);
  const RequestId a = add({.prompt = numbers(1, 5), .max_tokens = 2, .owner = "a"});
  const RequestId b = add({.prompt = numbers(2, 5), .max_tokens = 2, .owner = "b"});
  run_all();
  EXPECT_EQ(ended_[0], a);
  EXPECT_EQ(ended_[1], b);
}

}  // namespace
}  // namespace octavo
