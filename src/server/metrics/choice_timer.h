// choice_timer.h - when things happened to one choice, told to the metrics. I/O thread only.
#pragma once

#include <chrono>

#include "scheduler/update.h"

namespace octavo::server {

class ServerMetrics;

class ChoiceTimer {
 public:
  using Clock = std::chrono::steady_clock;

  ChoiceTimer(ServerMetrics& metrics, Clock::time_point arrival, int prompt_tokens)
      : metrics_(&metrics), arrival_(arrival), prompt_tokens_(prompt_tokens) {}

  // `scheduled`: with the first tokens, when the choice began to run.
  void tokens_came(int count, Clock::time_point scheduled);
  // In place of tokens.
  void embedding_came(Clock::time_point scheduled);
  void ended(FinishReason reason);

 private:
  ServerMetrics* metrics_;
  Clock::time_point arrival_;
  int prompt_tokens_;
  int tokens_ = 0;
  bool answered_ = false;  // something came
  Clock::time_point scheduled_ = {};
  Clock::time_point first_token_ = {};
  Clock::time_point last_token_ = {};
};

}  // namespace octavo::server
