// otlp_exporter.h - sends spans to an OpenTelemetry collector, on a thread of its own. Any thread.
#pragma once

#include <octavo_tracing.h>

#include <chrono>
#include <memory>
#include <string>

#include "server/tracing/request_span.h"

namespace octavo::server {

struct OtlpOptions {
  std::string endpoint = {};  // http://host:4318/v1/traces
  std::string version = "0";  // of this program
};

class OtlpExporter : public SpanSink {
 public:
  // Reads further settings from OpenTelemetry's environment variables, of which OTEL_SDK_DISABLED
  // makes this object do nothing. Throws SetupError.
  explicit OtlpExporter(const OtlpOptions& options);
  ~OtlpExporter() override;
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  bool on() const { return tracer_ != nullptr; }
  // Drops the span if the collector is so slow that the queue is full.
  void record(const RequestSpan& span) override;

  // Sends what is queued, for at most this time. Later spans are dropped.
  static constexpr std::chrono::milliseconds kFlushTime{2000};
  void stop(std::chrono::milliseconds timeout = kFlushTime);

 private:
  struct Free {
    void operator()(octavo_tracer* tracer) const { octavo_tracer_free(tracer); }
  };
  std::unique_ptr<octavo_tracer, Free> tracer_;  // null: disabled
  bool stopped_ = false;
};

}  // namespace octavo::server
