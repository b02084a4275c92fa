// engine_driver.h - an engine for test programs that takes token requests and returns whole
// answers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace octavo {

struct DrivenAnswer {
  std::vector<TokenId> tokens = {};
  std::vector<uint64_t> hashes = {};
  FinishReason finish = FinishReason::kLength;
  int cached_tokens = 0;
  double first_token_seconds = 0;  // since submission
  double seconds = 0;

  bool same_bits(const DrivenAnswer& other) const {
    return tokens == other.tokens && hashes == other.hashes;
  }
};

// Submits all requests at once; returns the first choice of each, in order.
inline std::vector<DrivenAnswer> answer_all(Engine& engine, const std::vector<Request>& requests) {
  using Clock = std::chrono::steady_clock;
  std::vector<DrivenAnswer> answers(requests.size());
  std::mutex mutex;
  std::condition_variable ended;
  size_t open = requests.size();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto asked = Clock::now();
    engine.submit(requests[i], [&, i, asked](Update update) {
      const std::lock_guard lock(mutex);
      DrivenAnswer& answer = answers[i];
      const double now = std::chrono::duration<double>(Clock::now() - asked).count();
      if (answer.tokens.empty()) answer.first_token_seconds = now;
      answer.tokens.insert(answer.tokens.end(), update.tokens.begin(), update.tokens.end());
      answer.hashes.insert(answer.hashes.end(), update.hashes.begin(), update.hashes.end());
      if (update.cached_tokens) answer.cached_tokens = *update.cached_tokens;
      if (!update.finish) return;
      answer.finish = *update.finish;
      answer.seconds = now;
      --open;
      ended.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return open == 0; });
  engine.wait_until_idle(std::chrono::minutes(1));  // so that its statistics include these answers
  return answers;
}

class EngineDriver {
 public:
  EngineDriver(const std::string& model, const EngineOptions& options)
      : checkpoint_(Checkpoint::open(model)), engine_(checkpoint_, options, nullptr) {}

  Engine& engine() { return engine_; }

  std::vector<DrivenAnswer> run(const std::vector<Request>& requests) {
    return answer_all(engine_, requests);
  }
  DrivenAnswer run_one(const Request& request) { return run({request}).front(); }

 private:
  Checkpoint checkpoint_;
  Engine engine_;
};

inline std::vector<TokenId> random_tokens(std::mt19937& random, int count, int vocab) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (auto& token : tokens) token = std::uniform_int_distribution<TokenId>(0, vocab - 1)(random);
  return tokens;
}

}  // namespace octavo
