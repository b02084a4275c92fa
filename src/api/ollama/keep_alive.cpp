#include "api/ollama/keep_alive.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "api/fields/field_kinds.h"

namespace octavo::api {
namespace {

constexpr size_t kLongestKeepAlive = 64;
constexpr double kLongestSeconds = 1e9;  // 31 years

struct DurationUnit {
  std::string_view name;
  double seconds;
};

// Longer names first: "ms" is not "m".
constexpr std::array<DurationUnit, 7> kDurationUnits = {{{"ns", 1e-9},
                                                         {"us", 1e-6},
                                                         {"\u00b5s", 1e-6},
                                                         {"ms", 1e-3},
                                                         {"s", 1},
                                                         {"m", 60},
                                                         {"h", 3600}}};

bool is_decimal_digit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// Removes a number such as 1.5 from the front of the text.
std::optional<double> take_decimal(std::string_view& text) {
  if (!is_decimal_digit(text)) return std::nullopt;
  double number = 0;
  for (; is_decimal_digit(text); text.remove_prefix(1)) number = number * 10 + (text.front() - '0');
  if (!text.starts_with('.')) return number;
  text.remove_prefix(1);
  for (double place = 0.1; is_decimal_digit(text); text.remove_prefix(1), place /= 10)
    number += place * (text.front() - '0');
  return number;
}

std::optional<double> take_unit(std::string_view& text) {
  for (const auto& [name, seconds] : kDurationUnits) {
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    return seconds;
  }
  return std::nullopt;
}

// "1h30m", or a number alone: seconds.
std::optional<double> duration_seconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  double total = 0;
  bool parts = false;
  do {
    const auto number = take_decimal(text);
    if (!number) return std::nullopt;
    const bool alone = text.empty() && !parts;
    const auto unit = alone ? std::optional(1.0) : take_unit(text);
    if (!unit) return std::nullopt;
    total += *number * *unit;
    parts = true;
  } while (!text.empty());
  return negative ? -total : total;
}

}  // namespace

std::chrono::milliseconds read_keep_alive(const Json& value) {
  std::optional<double> seconds;
  if (value.is_number()) seconds = value.get<double>();
  if (value.is_string())
    seconds = duration_seconds(to_string(value, "keep_alive", kLongestKeepAlive));
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
