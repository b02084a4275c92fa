#include "front/keep_alive.h"

#include <cmath>

#include "base/duration.h"

namespace octavo::front {
namespace {

// Longer times are as good as for ever, and would overflow a deadline.
constexpr double kLongestSeconds = 60.0 * 60 * 24 * 365 * 10;

}  // namespace

std::optional<KeepAlive> parse_keep_alive(std::string_view text) {
  const std::optional<double> seconds = parse_duration(text);
  if (!seconds) return std::nullopt;
  if (*seconds < 0 || !(*seconds <= kLongestSeconds)) return KeepAlive{.time = std::nullopt};
  return KeepAlive{.time = std::chrono::milliseconds(std::llround(*seconds * 1000))};
}

}  // namespace octavo::front
