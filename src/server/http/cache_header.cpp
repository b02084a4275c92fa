#include "server/http/cache_header.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

namespace octavo::server {
namespace {

// The first `most` characters of valid UTF-8.
std::string beginning_of(const std::string& text, size_t most) {
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && characters++ == most) break;
  }
  return text.substr(0, end);
}

std::string quoted(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  const std::string text = tokenizer.decode(tokens, /*skip_special_tokens=*/false);
  constexpr bool kAscii = true;
  return nlohmann::json(beginning_of(text, kCacheTextCharacters)).dump(-1, ' ', kAscii);
}

}  // namespace

std::string cache_header(const CacheReport& report, const Tokenizer& tokenizer) {
  std::string text = fmt::format("hit={}/{}", report.hit, report.prompt);
  if (report.disk > 0) text += fmt::format("; disk={}", report.disk);
  for (size_t i = 0; i < report.misses.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "; miss=" : ",", name_of(report.misses[i]));
  if (report.lost > 0) text += fmt::format("; lost={}", report.lost);
  if (report.at >= 0) text += fmt::format("; at={}", report.at);
  if (!report.seen.empty())
    text += fmt::format("; expected={}; seen={}", quoted(report.expected, tokenizer),
                        quoted(report.seen, tokenizer));
  return text;
}

}  // namespace octavo::server
