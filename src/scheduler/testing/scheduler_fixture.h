// scheduler_fixture.h - for tests: a scheduler over the fake model, driven step by step. No MLX.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/mtp_drafter.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_drafter.h"
#include "scheduler/testing/fake_runner.h"

namespace octavo {

inline constexpr int kFakeVocab = 50;

// first, first + 1 and so on, as token ids.
inline std::vector<TokenId> numbers(int first, int count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) tokens[static_cast<size_t>(i)] = (first + i) % kFakeVocab;
  return tokens;
}

// Blocks of 8 tokens.
class SchedulerFixture : public testing::Test {
 protected:
  void make(SchedulerOptions options, int pages, int window = 0) {
    make_of({SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8, .window = window}}, options, pages);
  }
  // right_percent: share of draft tokens that are right.
  void make_of(const std::vector<CacheSpec>& layers, SchedulerOptions options, int pages,
               std::optional<int> right_percent = std::nullopt) {
    options.vocab = kFakeVocab;
    plan_ = plan_cache(layers, 8);
    if (plan_.state) plan_.state_drafts = options.speculation.most_drafts;
    pool_ = std::make_unique<PagePool>(pages);
    prefixes_ = std::make_unique<PrefixCache>(plan_, *pool_);
    model_ = std::make_unique<FakeModel>(plan_, kFakeVocab);
    std::unique_ptr<Drafter> drafter;
    if (options.predicts) drafter = std::make_unique<MtpDrafter>();
    if (right_percent)
      drafter = std::make_unique<FakeDrafter>(
          *model_, FakeDrafter::Options{.vocab = kFakeVocab, .right_percent = *right_percent});
    scheduler_ = std::make_unique<Scheduler>(options, *prefixes_, nullptr, std::move(drafter));
    runner_ = std::make_unique<FakeRunner>(*model_, pages);
  }

  RequestId add(Request request) {
    requests_[next_id_] = request;
    scheduler_->add(next_id_, std::move(request));
    return next_id_++;
  }

  // Plans and starts a step. Returns its batch.
  Batch start() {
    auto batch = scheduler_->next();
    EXPECT_TRUE(batch.has_value());
    runner_->start(*batch);
    return *batch;
  }
  void finish() {
    try {
      take(scheduler_->commit(runner_->finish()));
    } catch (const std::runtime_error& error) {
      scheduler_->release_masks();
      runner_->drop();
      take(scheduler_->fail(error.what()));
    }
  }
  void run_all() {
    for (int steps = 0; !scheduler_->idle(); ++steps) {
      ASSERT_LT(steps, 100000);
      if (scheduler_->steps_in_flight() < scheduler_->options().most_steps()) {
        if (auto batch = scheduler_->next()) runner_->start(*batch);
      }
      if (!runner_->in_flight().empty() && steps % 3 != 0) finish();
    }
  }

  virtual void take(std::vector<Update> updates) = 0;

  CachePlan plan_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<FakeModel> model_;
  std::unique_ptr<FakeRunner> runner_;
  std::map<RequestId, Request> requests_;
  RequestId next_id_ = 1;
};

}  // namespace octavo
