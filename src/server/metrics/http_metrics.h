// http_metrics.h - metrics of an HTTP server that do not depend on what it serves.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "server/metrics/counter_by_key.h"

namespace octavo::server {

// Why a request was refused.
enum class Refusal : uint8_t {
  kQueue,
  kBytes,
  kConnections,
  kDraining,
  kKey,
  kKeyRequests,
  kHost,
  kTimeout,
  kBadRequest,
  kPreparation
};

class HttpMetrics {
 protected:
  const prometheus::Labels labels_;  // of every metric
  prometheus::Registry registry_;

 public:
  explicit HttpMetrics(prometheus::Labels labels);
  HttpMetrics(const HttpMetrics&) = delete;
  HttpMetrics& operator=(const HttpMetrics&) = delete;
  virtual ~HttpMetrics() = default;

  // The names of the API keys that exist, for the counters by key.
  virtual void set_key_names(const std::set<std::string>& names);

  prometheus::Counter& refusals(Refusal reason);
  // By route and status class: "2xx".
  prometheus::Counter& http_requests(std::string_view route, int status);

  prometheus::Counter& slow_readers;      // streams closed because the client read too slowly
  prometheus::Counter& request_timeouts;  // ended by the header x-request-timeout
  CounterByKey requests_by_key;

  // The text format Prometheus scrapes. Any thread.
  std::string text() const;

 protected:
  prometheus::Counter& counter(const std::string& name, const char* help,
                               const prometheus::Labels& more = {});
  prometheus::Gauge& gauge(const char* name, const char* help);
};

}  // namespace octavo::server
