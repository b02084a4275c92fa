#include "cli/client/running_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "bench/load/http_call.h"
#include "cli/client/metrics_text.h"

namespace octavo {
namespace {

using SystemClock = std::chrono::system_clock;

// Ollama writes "for ever" as a time centuries ahead.
constexpr auto kForever = std::chrono::hours(24 * 365 * 10);

std::string get(const ServerAccess& access, const char* path) {
  const bench::HttpReply reply =
      bench::http_call(bench::parse_server_url(access.url),
                       {.path = path, .api_key = access.api_key, .timeout_seconds = 10});
  if (!reply.ok())
    throw SetupError(fmt::format("{}{}: {}; --url sets the server's address", access.url, path,
                                 bench::reason_of(reply)));
  return reply.body;
}

std::string remaining(const RunningModel& model, SystemClock::time_point clock) {
  if (!model.expires_at || *model.expires_at - clock > kForever) return "for ever";
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(*model.expires_at - clock).count();
  if (seconds <= 0) return "now";
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3600);
}

double rate_of(const RunningModel& model, const ServerReading& before, const ServerReading& now) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  const auto earlier = std::ranges::find(before.models, model.name, &RunningModel::name);
  if (earlier == before.models.end() || seconds <= 0) return 0;
  // A counter that went back means a new process.
  return std::max(0.0, model.generated - earlier->generated) / seconds;
}

RunningModel model_of(const nlohmann::json& entry, const std::vector<MetricSample>& samples) {
  RunningModel model{.name = entry.value("name", ""),
                     .bytes = entry.value("size", uint64_t{0}),
                     .context = entry.value("context_length", 0),
                     .expires_at = parse_rfc3339(entry.value("expires_at", ""))};
  const auto sum = [&](const char* name) { return sum_of(samples, name, model.name); };
  model.running = sum("vllm:num_requests_running");
  model.waiting = sum("vllm:num_requests_waiting");
  model.generated = sum("vllm:generation_tokens_total");
  model.kv_use = sum("vllm:kv_cache_usage_perc");
  return model;
}

}  // namespace

void ServerAccess::add_to(CLI::App& command) {
  command.add_option("--url", url, "Address of the server, http://host:port")
      ->capture_default_str();
  command.add_option("--api-key", api_key, "API key of the server")->envname("OCTAVO_API_KEY");
}

std::optional<SystemClock::time_point> parse_rfc3339(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &read) != 6)
    return std::nullopt;
  std::string_view zone = std::string_view(text).substr(static_cast<size_t>(read));
  if (zone.starts_with('.')) {
    zone.remove_prefix(1);
    zone.remove_prefix(std::min(zone.find_first_not_of("0123456789"), zone.size()));
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  auto time = SystemClock::time_point(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
              std::chrono::minutes(minute) + std::chrono::seconds(second);
  if (zone == "Z") return time;
  int hours = 0;
  int minutes = 0;
  const std::string offset(zone);
  if (offset.size() != 6 || std::sscanf(offset.c_str() + 1, "%2d:%2d", &hours, &minutes) != 2)
    return std::nullopt;
  const auto ahead = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return offset.front() == '-' ? time + ahead : time - ahead;
}

std::vector<RunningModel> running_models(std::string_view ps, std::string_view metrics) {
  const nlohmann::json body = nlohmann::json::parse(ps, nullptr, false);
  const auto list = body.is_object() ? body.find("models") : body.end();
  if (!body.is_object() || list == body.end() || !list->is_array())
    throw SetupError("the answer of /api/ps is not a list of models");
  const std::vector<MetricSample> samples = read_metrics(metrics);
  std::vector<RunningModel> models;
  try {
    for (const nlohmann::json& entry : *list) models.push_back(model_of(entry, samples));
  } catch (const nlohmann::json::exception& error) {
    throw SetupError(fmt::format("the answer of /api/ps: {}", error.what()));
  }
  return models;
}

ServerReading read_server(const ServerAccess& access) {
  const std::string ps = get(access, "/api/ps");
  const std::string metrics = get(access, "/metrics");
  return {.models = running_models(ps, metrics), .at = std::chrono::steady_clock::now()};
}

std::string table_of(const ServerReading& before, const ServerReading& now,
                     SystemClock::time_point clock) {
  size_t width = 4;
  for (const RunningModel& model : now.models) width = std::max(width, model.name.size());
  std::string text =
      fmt::format("{:<{}}  {:>10}  {:>8}  {:>7}  {:>7}  {:>8}  {:>6}  UNTIL\n", "NAME", width,
                  "SIZE", "CONTEXT", "RUNNING", "WAITING", "TOKENS/S", "KV USE");
  for (const RunningModel& model : now.models)
    text += fmt::format("{:<{}}  {:>10}  {:>8}  {:>7.0f}  {:>7.0f}  {:>8.1f}  {:>5.0f}%  {}\n",
                        model.name, width, format_bytes(model.bytes), model.context, model.running,
                        model.waiting, rate_of(model, before, now), model.kv_use * 100,
                        remaining(model, clock));
  return text;
}

}  // namespace octavo
