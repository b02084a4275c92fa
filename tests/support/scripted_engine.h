// scripted_engine.h - lets a fake engine answer by a script: the client side chooses the answer of
// each request, and the runner side replaces the drawn tokens by it. No MLX.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/engine_client.h"
#include "scheduler/step_runner.h"
#include "support/answer_script.h"
#include "text/tokenizer.h"

namespace octavo {

// The answers of all requests so far, by the seed that marks the request. Any thread.
class ScriptedAnswers {
 public:
  // Returns the seed. The answer's last token ends it.
  uint64_t add(size_t prompt_tokens, std::vector<TokenId> answer) {
    const std::lock_guard lock(mutex_);
    answers_[++newest_] = {.prompt_tokens = prompt_tokens, .tokens = std::move(answer)};
    return newest_;
  }
  void drop(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    answers_.erase(seed);
  }
  std::optional<TokenId> token_at(uint64_t seed, size_t position) const {
    const std::lock_guard lock(mutex_);
    const auto found = answers_.find(seed);
    if (found == answers_.end() || position < found->second.prompt_tokens) return std::nullopt;
    const Answer& answer = found->second;
    return answer.tokens[std::min(position - answer.prompt_tokens, answer.tokens.size() - 1)];
  }

 private:
  struct Answer {
    size_t prompt_tokens = 0;
    std::vector<TokenId> tokens = {};
  };
  mutable std::mutex mutex_;
  uint64_t newest_ = uint64_t{1} << 48;  // above the seeds of other requests
  std::unordered_map<uint64_t, Answer> answers_;
};

// Any thread.
class ScriptedClient : public EngineClient {
 public:
  ScriptedClient(EngineClient& inner, const AnswerScript& script, const Tokenizer& tokenizer,
                 TokenId end, ScriptedAnswers& answers)
      : inner_(inner), script_(script), tokenizer_(tokenizer), end_(end), answers_(answers) {}

  RequestId submit(Request request, UpdateSink sink) override {
    const std::string prompt = tokenizer_.decode(request.prompt, false);
    if (const std::string* answer = script_.answer_for(prompt)) {
      std::vector<TokenId> tokens = tokenizer_.encode(*answer, false);
      tokens.push_back(end_);
      request.sampling.seed = answers_.add(request.prompt.size(), std::move(tokens));
    }
    return inner_.submit(std::move(request), std::move(sink));
  }
  void abort(RequestId id, std::optional<int> only_choice) override {
    inner_.abort(id, only_choice);
  }
  void reset_prefix_cache() override { inner_.reset_prefix_cache(); }
  void close() override { inner_.close(); }
  bool wait_until_idle(std::chrono::milliseconds timeout) override {
    return inner_.wait_until_idle(timeout);
  }
  EngineStats stats() const override { return inner_.stats(); }
  std::chrono::steady_clock::time_point heartbeat() const override { return inner_.heartbeat(); }

 private:
  EngineClient& inner_;
  const AnswerScript& script_;
  const Tokenizer& tokenizer_;
  TokenId end_;
  ScriptedAnswers& answers_;
};

// Engine thread. An answer that the grammar forbids is reported on stderr, and the fake model draws
// the rest.
class ScriptedRunner : public StepRunner {
 public:
  ScriptedRunner(StepRunner& inner, ScriptedAnswers& answers) : inner_(inner), answers_(answers) {}

  bool queues_at_once(const Batch& batch) const override { return inner_.queues_at_once(batch); }
  void start(const Batch& batch) override {
    inner_.start(batch);
    rows_.push_back(batch.sampling);
  }
  StepResult finish() override {
    StepResult result = inner_.finish();
    for (size_t i = 0; i < result.tokens.size(); ++i) replace(rows_.front()[i], result.tokens[i]);
    rows_.pop_front();
    return result;
  }
  void drop() override {
    inner_.drop();
    rows_.clear();
  }

 private:
  void replace(const RowSampling& row, TokenId& token) {
    const auto scripted = answers_.token_at(row.seed, row.position);
    if (!scripted) return;
    if (is_allowed(row, *scripted)) {
      token = *scripted;
    } else {
      fmt::print(stderr, "the grammar forbids token {} of the script at position {}\n", *scripted,
                 row.position);
      answers_.drop(row.seed);
    }
  }

  static bool is_allowed(const RowSampling& row, TokenId token) {
    if (!row.mask) return true;
    const auto words = row.mask->wait();
    const auto word = static_cast<size_t>(token) / 32;
    return words.empty() || (word < words.size() && (words[word] >> (token % 32) & 1) != 0);
  }

  StepRunner& inner_;
  ScriptedAnswers& answers_;
  std::deque<std::vector<RowSampling>> rows_;  // of the steps in flight
};

}  // namespace octavo
