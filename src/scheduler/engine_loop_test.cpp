#include "scheduler/engine_loop.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/error.h"
#include "scheduler/testing/fake_model.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;

// Computes nothing until released.
class HeldRunner : public StepRunner {
 public:
  explicit HeldRunner(StepRunner& inner) : inner_(inner) {}
  bool queues_at_once(const Batch& batch) const override { return inner_.queues_at_once(batch); }
  void start(const Batch& batch) override { inner_.start(batch); }
  StepResult finish() override {
    while (held) std::this_thread::sleep_for(1ms);
    return inner_.finish();
  }
  void drop() override { inner_.drop(); }

  std::atomic<bool> held = false;

 private:
  StepRunner& inner_;
};

class EngineLoopTest : public testing::Test {
 protected:
  EngineLoopTest() : thread_([this] { loop_.run(); }) {}
  ~EngineLoopTest() override {
    runner_.held = false;
    loop_.stop();
    thread_.join();
  }

  static constexpr int kVocab = 50;
  static constexpr int kPages = 40;

  CachePlan plan_ =
      plan_cache(std::vector<CacheSpec>{SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}}, 8);
  PagePool pool_{kPages};
  PrefixCache prefixes_{plan_, pool_};
  Scheduler scheduler_{
      {.max_num_seqs = 8, .max_num_batched_tokens = 32, .max_model_len = 100, .vocab = kVocab},
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
  std::vector<TokenId> all = {1, 2, 3};
  for (uint32_t p = 3; p < 8; ++p) all.push_back(model_.next_token(all, {.position = p}));
  EXPECT_EQ(tokens, std::vector<TokenId>(all.begin() + 3, all.end()));
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
TEST_F(EngineLoopTest, ManyThreadsSubmitAndAbort) {
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
