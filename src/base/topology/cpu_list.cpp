#include "base/topology/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace octavo {
namespace {

std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<CpuId> parse_cpu(std::string_view text) {
  CpuId id = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error != std::errc() || stop != end || id < 0 || id >= kMaxCpus) return std::nullopt;
  return id;
}

}  // namespace

std::optional<std::vector<CpuId>> parse_cpu_list(std::string_view text) {
  std::vector<CpuId> ids;
  text = without_space(text);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const size_t dash = range.find('-');
    const auto first = parse_cpu(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_cpu(range.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (CpuId id = *first; id <= *last; ++id) ids.push_back(id);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<CpuId> common_cpus(const std::vector<CpuId>& a, const std::vector<CpuId>& b) {
  std::vector<CpuId> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

}  // namespace octavo
