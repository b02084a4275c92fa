#include "server/request_timeout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace octavo::server {

using DeadlineClock = std::chrono::steady_clock;

DeadlineClock::time_point deadline_of(const HttpRequest& request,
                                      DeadlineClock::time_point arrival) {
  constexpr double kMostSeconds = 1e8;  // three years, which a time_point can hold
  // With a null character at its end, for strtod: std::from_chars for double is missing in older
  // standard libraries of macOS.
  const std::string text(request.header(kTimeoutHeader));
  if (text.empty()) return DeadlineClock::time_point::max();
  char* end = nullptr;
  const bool plain = text.find_first_not_of("0123456789.") == std::string::npos;
  const double seconds = plain ? std::strtod(text.c_str(), &end) : 0;
  if (!plain || end != text.c_str() + text.size() || !(seconds > 0))
    throw RequestError(400, kTimeoutHeader,
                       "must be a positive number of seconds, for example 30 or 0.5");
  const std::chrono::duration<double> time(std::min(seconds, kMostSeconds));
  return arrival + std::chrono::ceil<DeadlineClock::duration>(time);
}

void check_deadline(HttpContext& context, Exchange& exchange) {
  if (DeadlineClock::now() < exchange.request().deadline) return;
  context.http_metrics().request_timeouts.Increment();
  exchange.note("ended_by", "timeout");
  throw RequestError(
      504, "",
      fmt::format("the request did not finish within the {} s of its header {}; send a larger "
                  "number, or ask for less",
                  exchange.request().header(kTimeoutHeader), kTimeoutHeader));
}

}  // namespace octavo::server
