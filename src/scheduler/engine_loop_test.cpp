#include "scheduler/engine_loop.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/error.h"
#include "scheduler/testing/fake_runner.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;

// Returns no result until released, and each one late.
class HeldRunner : public StepRunner {
 public:
  explicit HeldRunner(FakeRunner& inner) : inner_(inner) {}
  bool queues_at_once(const Batch& batch) const override { return inner_.queues_at_once(batch); }
  void start(const Batch& batch) override {
    if (refers_to_earlier_step(batch)) refers = true;
    if (fails_next.exchange(false)) inner_.fail_starts = 1;
    inner_.start(batch);
    in_flight = inner_.in_flight().size();
    most_in_flight = std::max<size_t>(most_in_flight, in_flight);
  }
  StepResult finish() override {
    while (held) std::this_thread::sleep_for(1ms);
    if (late) std::this_thread::sleep_for(300us);
    StepResult result = inner_.finish();
    in_flight = inner_.in_flight().size();
    return result;
  }
  void drop() override {
    inner_.drop();
    in_flight = 0;
  }

  std::atomic<bool> held = false;
  std::atomic<bool> late = false;
  std::atomic<bool> fails_next = false;
  std::atomic<bool> refers = false;  // a step needed a token of another step
  std::atomic<size_t> in_flight = 0;
  std::atomic<size_t> most_in_flight = 0;

 private:
  FakeRunner& inner_;
};

class EngineLoopTest : public testing::Test {
 protected:
  explicit EngineLoopTest(int stages = 1) : stages_(stages), thread_([this] { loop_.run(); }) {}
  ~EngineLoopTest() override {
    runner_.held = false;
    loop_.stop();
    thread_.join();
  }

  std::vector<TokenId> expected(std::vector<TokenId> tokens, int count) const {
    const auto prompt = static_cast<std::ptrdiff_t>(tokens.size());
    for (int i = 0; i < count; ++i)
      tokens.push_back(
          model_.next_token(tokens, {.position = static_cast<uint32_t>(tokens.size())}));
    return {tokens.begin() + prompt, tokens.end()};
  }
  void submit_and_abort_from_many_threads();

  static constexpr int kVocab = 50;
  static constexpr int kPages = 40;

  int stages_;
  CachePlan plan_ =
      plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}}, 8);
  PagePool pool_{kPages};
  PrefixCache prefixes_{plan_, pool_};
  Scheduler scheduler_{{.max_num_seqs = 8,
                        .max_num_batched_tokens = 32,
                        .max_model_len = 100,
                        .vocab = kVocab,
                        .pipeline_stages = stages_},
                       prefixes_};
  FakeModel model_{plan_, kVocab};
  FakeRunner fake_{model_, kPages};
  HeldRunner runner_{fake_};
  EngineLoop loop_{
      {.max_open_requests = 100, .max_open_tokens = 5000}, prefixes_, scheduler_, runner_};
  std::thread thread_;
};

TEST_F(EngineLoopTest, ARequestIsAnswered) {
  std::vector<TokenId> tokens;
  loop_.submit({.prompt = {1, 2, 3}, .max_tokens = 5}, [&](Update update) {
    tokens.insert(tokens.end(), update.tokens.begin(), update.tokens.end());
  });
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  EXPECT_EQ(tokens, expected({1, 2, 3}, 5));
  EXPECT_EQ(loop_.stats().scheduler.generated_tokens, 5u);
}

TEST_F(EngineLoopTest, RejectsBadRequestsOverloadAndRequestsAfterClose) {
  const auto status = [&](Request request) {
    try {
      loop_.submit(std::move(request), [](Update) {});
    } catch (const RequestError& error) {
      return error.status();
    }
    return 0;
  };
  EXPECT_EQ(status({.prompt = {}}), 400);
  runner_.held = true;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(status({.prompt = {1}, .max_tokens = 1}), 0);
  EXPECT_EQ(status({.prompt = {1}, .max_tokens = 1}), 429);
  runner_.held = false;
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  runner_.held = true;
  const std::vector<TokenId> long_prompt(90, 1);
  for (int i = 0; i < 55; ++i) EXPECT_EQ(status({.prompt = long_prompt, .max_tokens = 1}), 0);
  EXPECT_EQ(status({.prompt = long_prompt, .max_tokens = 1}), 429);
  runner_.held = false;
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  EXPECT_EQ(status({.prompt = long_prompt, .max_tokens = 1}), 0);
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  loop_.close();
  EXPECT_EQ(status({.prompt = {1}, .max_tokens = 1}), 503);
}

TEST_F(EngineLoopTest, TheHeartbeatStopsWithAStuckStep) {
  const auto silence = [&] { return std::chrono::steady_clock::now() - loop_.heartbeat(); };
  EXPECT_LT(silence(), 1s);
  runner_.held = true;
  loop_.submit({.prompt = {1}, .max_tokens = 3}, [](Update) {});
  for (int i = 0; i < 100 && silence() < 1s; ++i) std::this_thread::sleep_for(50ms);
  EXPECT_GE(silence(), 1s);
  runner_.held = false;
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  EXPECT_LT(silence(), 1s);
}

// Every request ends exactly once, regardless of concurrent aborts.
void EngineLoopTest::submit_and_abort_from_many_threads() {
  std::atomic<int> ended = 0;
  std::atomic<int> taken = 0;
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      std::mt19937 random(caller);
      for (int i = 0; i < 300; ++i) {
        std::vector<TokenId> prompt(1 + random() % 60);
        for (auto& token : prompt) token = static_cast<TokenId>(random() % 4);
        try {
          const RequestId id =
              loop_.submit({.prompt = prompt, .max_tokens = static_cast<int>(1 + random() % 20)},
                           [&](Update update) { ended += update.finish.has_value(); });
          ++taken;
          if (random() % 3 == 0) loop_.abort(id);
        } catch (const RequestError& error) {
          EXPECT_EQ(error.status(), 429);
          std::this_thread::sleep_for(1ms);
        }
        loop_.stats();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  ASSERT_TRUE(loop_.wait_until_idle(60s));
  EXPECT_EQ(ended, taken);
  EXPECT_GT(taken, 100);
}

TEST_F(EngineLoopTest, ManyThreadsSubmitAndAbort) {
  submit_and_abort_from_many_threads();
  EXPECT_EQ(runner_.most_in_flight, 2u);
}

class EngineLoopStagesTest : public EngineLoopTest {
 protected:
  EngineLoopStagesTest() : EngineLoopTest(3) {}
};

TEST_F(EngineLoopStagesTest, StepsAreStartedUntilAllStagesHaveOneAndOneMoreIsQueued) {
  runner_.held = true;
  std::vector<TokenId> prompt(60);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i % 7);
  std::vector<TokenId> tokens;
  loop_.submit({.prompt = prompt, .max_tokens = 9}, [&](Update update) {
    tokens.insert(tokens.end(), update.tokens.begin(), update.tokens.end());
  });
  for (int i = 0; i < 1000 && runner_.in_flight < 4; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(runner_.in_flight, 4u);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(runner_.in_flight, 4u);
  runner_.held = false;
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  EXPECT_EQ(tokens, expected(prompt, 9));
  EXPECT_EQ(runner_.most_in_flight, 4u);
  EXPECT_FALSE(runner_.refers);
  // Prompt chunks of 10 rows, then one row for each token but the first.
  EXPECT_EQ(loop_.stats().scheduler.steps, 6u + 8u);
}

TEST_F(EngineLoopStagesTest, ManyThreadsSubmitAndAbort) {
  runner_.late = true;
  submit_and_abort_from_many_threads();
  EXPECT_GE(runner_.most_in_flight, 3u);
  EXPECT_FALSE(runner_.refers);
}

TEST_F(EngineLoopStagesTest, AFailedStepEndsNoRequest) {
  runner_.late = true;
  std::vector<std::vector<TokenId>> tokens(12);
  for (TokenId i = 0; i < 12; ++i) {
    auto& own = tokens[static_cast<size_t>(i)];
    loop_.submit({.prompt = {i, 2, 3}, .max_tokens = 60}, [&](Update update) {
      own.insert(own.end(), update.tokens.begin(), update.tokens.end());
    });
  }
  for (int i = 0; i < 1000 && loop_.stats().scheduler.generated_tokens < 50; ++i)
    std::this_thread::sleep_for(1ms);
  runner_.fails_next = true;
  ASSERT_TRUE(loop_.wait_until_idle(30s));
  EXPECT_EQ(loop_.stats().scheduler.failed_steps, 1u);
  for (TokenId i = 0; i < 12; ++i)
    EXPECT_EQ(tokens[static_cast<size_t>(i)], expected({i, 2, 3}, 60)) << i;
}

TEST_F(EngineLoopStagesTest, StopEndsOpenRequests) {
  runner_.late = true;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 20; ++i) {
    loop_.submit({.prompt = {1, 2}, .max_tokens = 90},
                 [&](Update update) { ended += update.finish.has_value(); });
  }
  loop_.stop();
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  EXPECT_EQ(ended, 20);
}

TEST_F(EngineLoopTest, StopEndsOpenRequests) {
  std::atomic<int> ended = 0;
  for (int i = 0; i < 20; ++i) {
    loop_.submit({.prompt = {1, 2}, .max_tokens = 90},
                 [&](Update update) { ended += update.finish.has_value(); });
  }
  loop_.stop();
  ASSERT_TRUE(loop_.wait_until_idle(10s));
  EXPECT_EQ(ended, 20);
}

}  // namespace
}  // namespace octavo
