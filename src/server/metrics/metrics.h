// metrics.h - the metrics of /metrics: vLLM's names, buckets and labels, and our own under octavo:.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <string_view>

#include "api/served_model.h"
#include "server/metrics/http_metrics.h"

namespace octavo::server {

class ServerMetrics : public HttpMetrics {
 private:
  std::unique_ptr<prometheus::Collectable> engine_;

 public:
  explicit ServerMetrics(const api::ServedModel& model);

  // As HttpMetrics::text(), with the engine's. Any thread.
  std::string text() const;

  void set_key_names(const std::set<std::string>& names) override;

  prometheus::Counter& request_success(FinishReason reason);

  prometheus::Histogram& time_to_first_token;
  prometheus::Histogram& inter_token_latency;
  prometheus::Histogram& time_per_output_token;
  prometheus::Histogram& e2e_request_latency;
  prometheus::Histogram& request_queue_time;
  prometheus::Histogram& request_inference_time;
  prometheus::Histogram& request_prefill_time;
  prometheus::Histogram& request_decode_time;
  prometheus::Histogram& request_prompt_tokens;
  prometheus::Histogram& request_generation_tokens;
  prometheus::Counter& prompt_tokens;
  CounterByKey prompt_tokens_by_key;
  CounterByKey generation_tokens_by_key;
  prometheus::Gauge& text_workers_stuck;  // set before each scrape

 private:
  prometheus::Histogram& histogram(const char* name, const char* help,
                                   const prometheus::Histogram::BucketBoundaries& bounds);
};

}  // namespace octavo::server
