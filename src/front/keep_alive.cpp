#include "front/keep_alive.h"

#include <cmath>

namespace octavo::front {
namespace {

// Longer times are as good as for ever, and would overflow a deadline.
constexpr double kLongestMs = 1000.0 * 60 * 60 * 24 * 365 * 10;

// Removes decimal digits, which may have a point, from the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  double scale = 0;  // of the next digit after the point
  bool digits = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && scale == 0) {
      scale = 0.1;
    } else if (c < '0' || c > '9') {
      break;
    } else if (scale == 0) {
      number = number * 10 + (c - '0');
      digits = true;
    } else {
      number += scale * (c - '0');
      scale /= 10;
      digits = true;
    }
  }
  if (!digits) return std::nullopt;
  text.remove_prefix(at);
  return number;
}

// Removes a unit from the front of `text` and returns its milliseconds; zero if there is none.
double take_unit(std::string_view& text) {
  struct Unit {
    std::string_view name;
    double ms;
  };
  constexpr Unit kUnits[] = {{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1},
                             {"s", 1e3},   {"m", 60e3},  {"h", 3600e3}};
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.ms;
  }
  return 0;
}

}  // namespace

std::optional<KeepAlive> parse_keep_alive(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double total = 0;
  bool whole = false;  // a number without a unit, which must be the only one
  for (bool first = true; !text.empty(); first = false) {
    const std::optional<double> number = take_number(text);
    if (!number || whole) return std::nullopt;
    double unit = take_unit(text);
    if (unit == 0) {
      if (!first || !text.empty()) return std::nullopt;
      whole = true;
      unit = 1e3;
    }
    total += *number * unit;
  }
  if (negative && total > 0) return KeepAlive{.time = std::nullopt};
  if (!(total <= kLongestMs)) return KeepAlive{.time = std::nullopt};
  return KeepAlive{.time = std::chrono::milliseconds(std::llround(total))};
}

}  // namespace octavo::front
