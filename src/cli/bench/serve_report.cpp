#include "cli/bench/serve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct Metric {
  const char* name;  // as in --percentile-metrics
  const char* label;
  const char* title;
  bench::LatencySummary bench::LoadFigures::*summary;
};
constexpr std::array kMetrics = {
    Metric{"ttft", "TTFT", "Time to First Token", &bench::LoadFigures::ttft},
    Metric{"tpot", "TPOT", "Time per Output Token (excl. 1st token)", &bench::LoadFigures::tpot},
    Metric{"itl", "ITL", "Inter-token Latency", &bench::LoadFigures::itl},
    Metric{"e2el", "E2EL", "End-to-end Latency", &bench::LoadFigures::e2el},
};

class Table {
 public:
  void rule(const char* title, char fill) {
    std::string line(50, fill);
    const size_t length = std::char_traits<char>::length(title);
    line.replace((line.size() - length) / 2, length, title);
    text_ += line + "\n";
  }
  void count(const char* name, uint64_t value) { row(name, fmt::format("{}", value)); }
  void number(const std::string& name, double value) { row(name, fmt::format("{:.2f}", value)); }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string take() { return std::move(text_); }

 private:
  void row(const std::string& name, const std::string& value) {
    fmt::format_to(std::back_inserter(text_), "{:<40} {}\n", name, value);
  }

  std::string text_;
};

void add_metric(Table& table, const Metric& metric, const BenchServeReport& report) {
  const bench::LatencySummary& summary = report.figures.*metric.summary;
  table.rule(metric.title, '-');
  table.number(fmt::format("Mean {} (ms):", metric.label), summary.mean * 1e3);
  table.number(fmt::format("Median {} (ms):", metric.label), summary.median * 1e3);
  for (size_t i = 0; i < summary.percentiles.size(); ++i) {
    table.number(fmt::format("P{} {} (ms):", report.flags.percentiles[i], metric.label),
                 summary.percentiles[i] * 1e3);
  }
}

void add_failures(Table& table, const bench::LoadFigures& figures) {
  if (figures.failures.empty()) return;
  table.line("Failed requests by reason:");
  for (const bench::FailureCount& failure : figures.failures)
    table.line(fmt::format("{:>7}  {}", failure.requests, failure.reason));
}

void add_remarks(Table& table, const bench::LoadFigures& figures) {
  if (figures.chunks_counted > 0) {
    table.line(fmt::format(
        "The server sent no usage for {} requests: their token counts are chunk counts.",
        figures.chunks_counted));
  }
  add_failures(table, figures);
}

Json json_row(const bench::RequestRecord& record) {
  Json itls = Json::array();
  for (size_t i = 1; i < record.chunks.size(); ++i)
    itls.push_back((record.chunks[i] - record.chunks[i - 1]) * 1e3);
  const bool first = !record.chunks.empty();
  return {{"start_s", record.sent},
          {"prompt_tokens", record.prompt_tokens},
          {"output_tokens", record.output_tokens},
          {"ttft_ms", first ? Json(record.ttft() * 1e3) : Json()},
          {"e2el_ms", first ? Json(record.e2el() * 1e3) : Json()},
          {"itl_ms", std::move(itls)},
          {"error", record.failure}};
}

Json settings_of(const BenchServeReport& report) {
  const BenchServeFlags& flags = report.flags;
  return {{"base_url", flags.base_url},
          {"endpoint", flags.endpoint},
          {"model_id", report.model},
          {"dataset_name", flags.dataset_name},
          {"num_prompts", report.result.records.size()},
          // JSON has no infinity.
          {"request_rate", std::isinf(flags.request_rate) ? Json("inf") : Json(flags.request_rate)},
          {"max_concurrency", flags.max_concurrency > 0 ? Json(flags.max_concurrency) : Json()},
          {"seed", flags.seed}};
}

}  // namespace

std::string bench_serve_table(const BenchServeReport& report) {
  const BenchServeFlags& flags = report.flags;
  const bench::LoadFigures& figures = report.figures;
  Table table;
  table.rule(" Serving Benchmark Result ", '=');
  table.count("Successful requests:", figures.completed);
  table.count("Failed requests:", figures.failed);
  if (figures.completed == 0) {  // rates and latencies of no request would be zeros
    table.rule("", '=');
    add_failures(table, figures);
    return table.take();
  }
  if (flags.max_concurrency > 0)
    table.count("Maximum request concurrency:", static_cast<uint64_t>(flags.max_concurrency));
  if (!std::isinf(flags.request_rate))
    table.number("Request rate configured (RPS):", flags.request_rate);
  table.number("Benchmark duration (s):", figures.seconds);
  table.count("Total input tokens:", figures.input_tokens);
  table.count("Total generated tokens:", figures.output_tokens);
  table.number("Request throughput (req/s):", figures.per_second(figures.completed));
  if (!flags.goodput.empty())
    table.number("Request goodput (req/s):", figures.per_second(figures.good));
  table.number("Output token throughput (tok/s):", figures.per_second(figures.output_tokens));
  table.number("Peak output token throughput (tok/s):", figures.peak_output_tokens);
  table.number("Peak concurrent requests:", static_cast<double>(figures.peak_concurrent));
  table.number("Total token throughput (tok/s):",
               figures.per_second(figures.input_tokens + figures.output_tokens));
  for (const Metric& metric : kMetrics)
    if (std::ranges::count(flags.metrics, metric.name) > 0) add_metric(table, metric, report);
  table.rule("", '=');
  add_remarks(table, figures);
  return table.take();
}

std::string bench_serve_json(const BenchServeReport& report) {
  const bench::LoadFigures& figures = report.figures;
  Json json = settings_of(report);
  json["duration"] = figures.seconds;
  json["completed"] = figures.completed;
  json["failed"] = figures.failed;
  json["total_input_tokens"] = figures.input_tokens;
  json["total_output_tokens"] = figures.output_tokens;
  json["chunk_counted_requests"] = figures.chunks_counted;
  json["request_throughput"] = figures.per_second(figures.completed);
  if (!report.flags.goodput.empty()) json["request_goodput"] = figures.per_second(figures.good);
  json["output_throughput"] = figures.per_second(figures.output_tokens);
  json["total_token_throughput"] = figures.per_second(figures.input_tokens + figures.output_tokens);
  json["max_output_tokens_per_s"] = figures.peak_output_tokens;
  json["max_concurrent_requests"] = figures.peak_concurrent;
  for (const Metric& metric : kMetrics) {
    const bench::LatencySummary& summary = figures.*metric.summary;
    json[fmt::format("mean_{}_ms", metric.name)] = summary.mean * 1e3;
    json[fmt::format("median_{}_ms", metric.name)] = summary.median * 1e3;
    json[fmt::format("std_{}_ms", metric.name)] = summary.deviation * 1e3;
    for (size_t i = 0; i < summary.percentiles.size(); ++i)
      json[fmt::format("p{}_{}_ms", report.flags.percentiles[i], metric.name)] =
          summary.percentiles[i] * 1e3;
  }
  json["failures"] = Json::array();
  for (const bench::FailureCount& failure : figures.failures)
    json["failures"].push_back({{"reason", failure.reason}, {"requests", failure.requests}});
  if (report.flags.save_detailed) {
    json["requests"] = Json::array();
    for (const bench::RequestRecord& record : report.result.records)
      json["requests"].push_back(json_row(record));
  }
  // A truncated server message may end inside a UTF-8 character.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octavo
