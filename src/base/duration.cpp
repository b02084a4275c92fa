#include "base/duration.h"

#include <array>

namespace octavo {
namespace {

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

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
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

}  // namespace octavo
