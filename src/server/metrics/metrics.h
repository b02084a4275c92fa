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

namespace octavo::server {

// Why a request was refused.
enum class Refusal : uint8_t {
  kQueue,
  kBytes,
  kConnections,
  kDraining,
  kKey,
  kHost,
  kTimeout,
  kBadRequest,
  kPreparation
};

class ServerMetrics {
 private:
  prometheus::Labels labels_;
  prometheus::Registry registry_;
  std::unique_ptr<prometheus::Collectable> engine_;

 public:
  explicit ServerMetrics(const api::ServedModel& model);
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // The text format Prometheus scrapes. Any thread.
  std::string text() const;

  prometheus::Counter& request_success(FinishReason reason);
  prometheus::Counter& refusals(Refusal reason);
  // By route and status class: "2xx".
  prometheus::Counter& http_requests(std::string_view route, int status);

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
  prometheus::Counter& slow_readers;      // streams closed because the client read too slowly
  prometheus::Gauge& text_workers_stuck;  // set before each scrape

 private:
  prometheus::Histogram& histogram(const char* name, const char* help,
                                   const prometheus::Histogram::BucketBoundaries& bounds);
  prometheus::Counter& counter(const std::string& name, const char* help,
                               const prometheus::Labels& more = {});
  prometheus::Gauge& gauge(const char* name, const char* help);
};

}  // namespace octavo::server
