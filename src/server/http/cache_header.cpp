#include "server/http/cache_header.h"

#include <fmt/format.h>

namespace octavo::server {

std::string cache_header(const CacheReport& report) {
  std::string text = fmt::format("hit={}/{}", report.hit, report.prompt);
  if (report.disk > 0) text += fmt::format("; disk={}", report.disk);
  for (size_t i = 0; i < report.misses.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "; miss=" : ",", name_of(report.misses[i]));
  if (report.lost > 0) text += fmt::format("; lost={}", report.lost);
  if (report.at >= 0) text += fmt::format("; at={}", report.at);
  return text;
}

}  // namespace octavo::server
