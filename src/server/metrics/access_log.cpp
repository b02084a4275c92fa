#include "server/metrics/access_log.h"

#include "base/log.h"

namespace octavo::server {

void log_access(const HttpExchange& exchange, std::chrono::steady_clock::duration took, bool left) {
  const HttpRequest& request = exchange.request();
  LogFields fields = {
      {"method", request.method},
      {"path", request.path},
      {"status", left && exchange.status() == 0 ? "499" : std::to_string(exchange.status())},
      {"ms", std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count())},
      {"id", request.id}};
  if (left) fields.emplace_back("left", "true");
  for (const auto& note : exchange.notes()) fields.push_back(note);
  // Probes and scrapes arrive every few seconds.
  const bool routine = request.method == "GET" && exchange.status() == 200;
  log_event(routine ? spdlog::level::debug : spdlog::level::info, "request", fields);
}

}  // namespace octavo::server
