#include "server/metrics/choice_timer.h"

#include "server/metrics/metrics.h"

namespace octavo::server {
namespace {

double seconds(ChoiceTimer::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void ChoiceTimer::tokens_came(int count, Clock::time_point scheduled) {
  if (count == 0) return;
  const auto now = Clock::now();
  if (tokens_ == 0) {
    scheduled_ = scheduled;
    first_token_ = now;
    metrics_->time_to_first_token.Observe(seconds(now - arrival_));
  } else {
    metrics_->inter_token_latency.Observe(seconds(now - last_token_) / count);
  }
  tokens_ += count;
  last_token_ = now;
  answered_ = true;
}

void ChoiceTimer::embedding_came(Clock::time_point scheduled) {
  scheduled_ = scheduled;
  first_token_ = last_token_ = Clock::now();
  answered_ = true;
}

void ChoiceTimer::ended(FinishReason reason) {
  finish_ = reason;
  metrics_->request_success(reason).Increment();
  const auto now = Clock::now();
  metrics_->e2e_request_latency.Observe(seconds(now - arrival_));
  metrics_->request_prompt_tokens.Observe(prompt_tokens_);
  metrics_->request_generation_tokens.Observe(tokens_);
  if (!answered_) return;
  metrics_->request_queue_time.Observe(seconds(scheduled_ - arrival_));
  metrics_->request_prefill_time.Observe(seconds(first_token_ - scheduled_));
  metrics_->request_decode_time.Observe(seconds(last_token_ - first_token_));
  metrics_->request_inference_time.Observe(seconds(last_token_ - scheduled_));
  if (tokens_ > 1)
    metrics_->time_per_output_token.Observe(seconds(last_token_ - first_token_) / (tokens_ - 1));
}

}  // namespace octavo::server
