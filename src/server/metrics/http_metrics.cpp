#include "server/metrics/http_metrics.h"

#include <prometheus/text_serializer.h>

#include <utility>

namespace octavo::server {
namespace {

std::string_view name_of(Refusal reason) {
  switch (reason) {
    case Refusal::kQueue:
      return "queue_full";
    case Refusal::kBytes:
      return "bytes_full";
    case Refusal::kConnections:
      return "connections_full";
    case Refusal::kDraining:
      return "draining";
    case Refusal::kKey:
      return "no_key";
    case Refusal::kKeyRequests:
      return "key_requests_full";
    case Refusal::kHost:
      return "host";
    case Refusal::kTimeout:
      return "slow_sender";
    case Refusal::kBadRequest:
      return "bad_request";
    case Refusal::kPreparation:
      return "preparation";
  }
  return "";
}

}  // namespace

HttpMetrics::HttpMetrics(prometheus::Labels labels)
    : labels_(std::move(labels)),
      slow_readers(counter("octavo:slow_readers_total",
                           "Streams closed because the client read too slowly")),
      request_timeouts(counter("octavo:request_timeouts_total",
                               "Requests ended by their header x-request-timeout")),
      requests_by_key(registry_, labels_, "octavo:requests_by_key_total",
                      "Requests by the name of their API key") {}

void HttpMetrics::set_key_names(const std::set<std::string>& names) {
  requests_by_key.set_names(names);
}

prometheus::Counter& HttpMetrics::counter(const std::string& name, const char* help,
                                          const prometheus::Labels& more) {
  prometheus::Labels labels = labels_;
  labels.insert(more.begin(), more.end());
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(labels);
}

prometheus::Gauge& HttpMetrics::gauge(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels_);
}

prometheus::Counter& HttpMetrics::refusals(Refusal reason) {
  return counter("octavo:refusals_total", "Rejected requests by reason",
                 {{"reason", std::string(name_of(reason))}});
}

prometheus::Counter& HttpMetrics::http_requests(std::string_view route, int status) {
  return counter("octavo:http_requests_total", "HTTP requests by route and status",
                 {{"route", std::string(route)}, {"status", std::to_string(status)}});
}

std::string HttpMetrics::text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace octavo::server
