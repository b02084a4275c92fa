#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace octavo {

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string format_count(uint64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{}", count);
}

uint64_t parse_bytes(std::string_view text, std::string_view flag) {
  static constexpr std::array<std::pair<std::string_view, double>, 12> kSuffixes = {{
      {"", 1},
      {"B", 1},
      {"K", 1024.0},
      {"KiB", 1024.0},
      {"KB", 1e3},
      {"M", 1048576.0},
      {"MiB", 1048576.0},
      {"MB", 1e6},
      {"G", 1073741824.0},
      {"GiB", 1073741824.0},
      {"GB", 1e9},
      {"TiB", 1099511627776.0},
  }};
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (status == std::errc() && std::isfinite(value) && value >= 0) {
    for (const auto& [name, factor] : kSuffixes) {
      if (suffix == name && value * factor < 9e18) return static_cast<uint64_t>(value * factor);
    }
  }
  throw SetupError(
      fmt::format("{}: cannot read \"{}\" as a size; write it like 4GiB or 512MB", flag, text));
}

}  // namespace octavo
