#include "api/ollama/keep_alive.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "api/fields/field_kinds.h"
#include "base/duration.h"

namespace octavo::api {
namespace {

constexpr size_t kLongestKeepAlive = 64;
constexpr double kLongestSeconds = 1e9;  // 31 years

}  // namespace

std::chrono::milliseconds read_keep_alive(const Json& value) {
  std::optional<double> seconds;
  if (value.is_number()) seconds = value.get<double>();
  if (value.is_string())
    seconds = parse_duration(to_string(value, "keep_alive", kLongestKeepAlive));
  if (!seconds)
    refuse("keep_alive",
           "must be a number of seconds, or a duration such as \"5m\", not " + shown(value));
  if (*seconds < 0) return std::chrono::milliseconds(-1);
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::ceil(std::min(*seconds, kLongestSeconds) * 1000)));
}

Json keep_alive_schema() {
  return {{"anyOf", {string_schema(kLongestKeepAlive), {{"type", "number"}}}}};
}

}  // namespace octavo::api
