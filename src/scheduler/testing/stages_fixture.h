// stages_fixture.h - for tests: a scheduler with several pipeline stages, and the loop that keeps
// them busy. No MLX.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "scheduler/testing/scheduler_fixture.h"

namespace octavo {

inline const SoftmaxSpec kOneHead{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
inline const StateSpec kRecurrent{
    .heads = 2, .k_dim = 8, .v_dim = 8, .conv_rows = 3, .conv_channels = 24};

class StagesTest : public SchedulerFixture {
 protected:
  void take(std::vector<Update> updates) override {
    for (const Update& update : updates) {
      auto& answer = answers_[{update.request, update.choice}];
      answer.insert(answer.end(), update.tokens.begin(), update.tokens.end());
      if (update.finish) ends_[update.request] = *update.finish;
      if (!update.embedding.empty()) embeddings_[update.request] = update.embedding;
    }
  }
  void make_staged(int stages, SchedulerOptions options, int pages = 200, int window = 0) {
    options.pipeline_stages = stages;
    make(options, pages, window);
  }
  void forget() {
    answers_.clear();
    ends_.clear();
    embeddings_.clear();
    requests_.clear();
    next_id_ = 1;
  }
  // Starts steps until next() returns none or no more may be in flight.
  std::vector<int> fill() {
    std::vector<int> rows;
    while (scheduler_->steps_in_flight() < scheduler_->options().most_steps()) {
      const auto batch = scheduler_->next();
      if (!batch) break;
      const bool staged = scheduler_->options().pipeline_stages > 1;
      EXPECT_FALSE(staged && refers_to_earlier_step(*batch));
      runner_->start(*batch);
      rows.push_back(batch->rows());
    }
    return rows;
  }
  // As EngineLoop.
  void run_filled() {
    for (int steps = 0; !scheduler_->idle(); ++steps) {
      ASSERT_LT(steps, 100000);
      fill();
      if (!runner_->in_flight().empty()) finish();
    }
  }
  std::vector<TokenId> expected(RequestId id, size_t count) {
    std::vector<TokenId> tokens = requests_[id].prompt;
    for (size_t i = 0; i < count; ++i)
      tokens.push_back(
          model_->next_token(tokens, {.position = static_cast<uint32_t>(tokens.size())}));
    return {tokens.end() - static_cast<std::ptrdiff_t>(count), tokens.end()};
  }
  void expect_right_answers(size_t count) {
    for (const auto& [id, request] : requests_) {
      const auto& answer = answers_[{id, 0}];
      EXPECT_EQ(answer, expected(id, count)) << id;
    }
  }

  std::map<std::pair<RequestId, int>, std::vector<TokenId>> answers_;
  std::map<RequestId, FinishReason> ends_;
  std::map<RequestId, std::vector<float>> embeddings_;
};

}  // namespace octavo
