#include "server/tracing/otlp_exporter.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/rust_border.h"

namespace octavo::server {
namespace {

void log_tracer_line(void*, bool warns, const char* text, size_t size) {
  spdlog::log(warns ? spdlog::level::warn : spdlog::level::info, "{}",
              std::string_view(text, size));
}

}  // namespace

OtlpExporter::OtlpExporter(const OtlpOptions& options) {
  const std::string json =
      nlohmann::json{{"endpoint", options.endpoint}, {"version", options.version}}.dump(
          -1, ' ', false, nlohmann::json::error_handler_t::replace);
  octavo_tracer* tracer = nullptr;
  RustText error;
  if (octavo_tracer_new(json.data(), json.size(), {.report = log_tracer_line, .context = nullptr},
                        &tracer, error.out()) != OCTAVO_RUST_OK)
    throw SetupError("--otlp-traces-endpoint: " + std::string(error.view()));
  tracer_.reset(tracer);
}

OtlpExporter::~OtlpExporter() { stop(); }

void OtlpExporter::record(const RequestSpan& span) {
  if (!tracer_) return;
  const std::string json = span_json(
      span, {.steady = RequestSpan::Clock::now(), .system = std::chrono::system_clock::now()});
  expect_ok(octavo_tracer_record(tracer_.get(), json.data(), json.size(), nullptr));
}

void OtlpExporter::stop(std::chrono::milliseconds timeout) {
  if (!tracer_ || std::exchange(stopped_, true)) return;
  bool sent = false;
  expect_ok(
      octavo_tracer_stop(tracer_.get(), static_cast<uint64_t>(timeout.count()), &sent, nullptr));
  if (!sent)
    spdlog::warn("the trace collector did not accept the last spans within {} ms, so they are lost",
                 timeout.count());
}

}  // namespace octavo::server
