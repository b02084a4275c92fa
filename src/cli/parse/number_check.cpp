#include "cli/parse/number_check.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace octavo {
namespace {

// Factors of k, m, g and K, M, G; 1 without a suffix.
int64_t take_factor(std::string_view& text) {
  constexpr std::string_view kSuffixes = "kmgKMG";
  const size_t suffix = text.empty() ? std::string_view::npos : kSuffixes.find(text.back());
  if (suffix == std::string_view::npos) return 1;
  text.remove_suffix(1);
  const int64_t base = suffix < 3 ? 1000 : 1024;
  int64_t factor = base;
  for (size_t i = 0; i < suffix % 3; ++i) factor *= base;
  return factor;
}

std::optional<double> parse_real(std::string_view text) {
  // std::from_chars for double is missing in older standard libraries of macOS.
  const std::string copy(text);
  if (copy.empty() || copy.find_first_not_of("0123456789.+-eE") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string range_text(int64_t low, int64_t high) {
  return high >= std::numeric_limits<int32_t>::max() ? fmt::format("at least {}", low)
                                                     : fmt::format("{} to {}", low, high);
}

// Replaces `text` by its plain number. Returns the problem, or an empty text.
std::string check_whole(std::string& text, int64_t low, int64_t high) {
  const auto number = parse_whole_number(text);
  if (!number) {
    return fmt::format("\"{}\" is not a whole number; use {}", text, range_text(low, high));
  }
  if (*number > std::numeric_limits<int32_t>::max() && *number > high)
    return fmt::format("{} is too large; use at most {}", text, high);
  if (*number < low || *number > high)
    return fmt::format("{} is out of range; use {}", text, range_text(low, high));
  text = std::to_string(*number);
  return {};
}

}  // namespace

std::optional<int64_t> parse_whole_number(std::string_view text) {
  const std::string_view whole = text;
  const int64_t factor = take_factor(text);
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && rest == text.data() + text.size()) {
    if (std::abs(static_cast<double>(number)) * static_cast<double>(factor) > 9e18)
      return std::nullopt;
    return number * factor;
  }
  const bool decimal = factor > 1 && std::string_view("kmg").find(whole.back()) != whole.npos;
  const auto real = decimal ? parse_real(text) : std::nullopt;
  if (!real || std::abs(*real) * static_cast<double>(factor) > 9e18) return std::nullopt;
  return std::llround(*real * static_cast<double>(factor));
}

CLI::Validator whole_number(int64_t low, int64_t high) {
  return {[low, high](std::string& text) { return check_whole(text, low, high); }, ""};
}

CLI::Validator real_number(double low, bool including, double high) {
  const std::string allowed =
      std::isfinite(high) ? fmt::format("{} to {}{}", low, high, including ? "" : ", without 0")
                          : fmt::format("{} {}", including ? "at least" : "more than", low);
  return {[=](std::string& text) -> std::string {
            const auto number = parse_real(text);
            if (!number) return fmt::format("\"{}\" is not a number; use {}", text, allowed);
            if (*number < low || *number > high || (!including && *number == low))
              return fmt::format("{} is out of range; use {}", text, allowed);
            return {};
          },
          ""};
}

CLI::Validator port_number() {
  return {[](std::string& text) -> std::string {
            const auto number = parse_whole_number(text);
            if (number && *number >= 0 && *number <= 65535) {
              text = std::to_string(*number);
              return {};
            }
            return fmt::format("{} is not a port; use 1 to 65535, or 0 for any free port", text);
          },
          ""};
}

CLI::Validator context_length() {
  return {[](std::string& text) -> std::string {
            if (text == "auto" || text == "-1") {
              text = "0";
              return {};
            }
            const std::string problem = check_whole(text, 1, std::numeric_limits<int32_t>::max());
            return problem.empty() ? "" : problem + ", for example 4096, 4K or 100k";
          },
          ""};
}

}  // namespace octavo
