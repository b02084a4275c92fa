// choice_timer.h - measures the latencies of one choice for the metrics. I/O thread only.
#pragma once

#include <chrono>
#include <optional>

#include "scheduler/update.h"

namespace octavo::server {

class ServerMetrics;

class ChoiceTimer {
 public:
  using Clock = std::chrono::steady_clock;

  ChoiceTimer(ServerMetrics& metrics, Clock::time_point arrival, int prompt_tokens)
      : metrics_(&metrics), arrival_(arrival), prompt_tokens_(prompt_tokens) {}

  // `scheduled`: when the choice started to run; used with the first tokens.
  void tokens_came(int count, Clock::time_point scheduled);
  // Instead of tokens.
  void embedding_came(Clock::time_point scheduled);
  void ended(FinishReason reason);

  bool answered() const { return answered_; }  // the times below are set
  Clock::time_point scheduled() const { return scheduled_; }
  Clock::time_point first_token() const { return first_token_; }
  Clock::time_point last_token() const { return last_token_; }
  std::optional<FinishReason> finish() const { return finish_; }

 private:
  ServerMetrics* metrics_;
  Clock::time_point arrival_;
  int prompt_tokens_;
  int tokens_ = 0;
  bool answered_ = false;  // tokens or an embedding arrived
  Clock::time_point scheduled_ = {};
  Clock::time_point first_token_ = {};
  Clock::time_point last_token_ = {};
  std::optional<FinishReason> finish_ = {};
};

}  // namespace octavo::server
