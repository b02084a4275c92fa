#include "bench/load/server_url.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace octavo::bench {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void refuse(std::string_view url) {
  throw SetupError(fmt::format("{}: expected http://host[:port][/prefix]", url));
}

}  // namespace

ServerUrl parse_server_url(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) {
    throw SetupError(
        fmt::format("{}: https is not supported; use the http address behind the TLS proxy", url));
  }
  if (!url.starts_with(kScheme)) refuse(url);
  std::string_view rest = url.substr(kScheme.size());
  ServerUrl parsed;
  const size_t slash = std::min(rest.find('/'), rest.size());
  parsed.prefix = rest.substr(slash);
  while (parsed.prefix.ends_with('/')) parsed.prefix.pop_back();
  rest = rest.substr(0, slash);
  if (rest.starts_with('[')) {  // an IPv6 address contains colons
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) refuse(url);
    parsed.host = rest.substr(1, close - 1);
    rest = rest.substr(close + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    parsed.host = rest.substr(0, colon);
    rest = rest.substr(colon);
  }
  if (!rest.empty()) {
    parsed.port = rest.substr(1);
    if (rest[0] != ':' || parsed.port.empty() || !std::ranges::all_of(parsed.port, is_digit))
      refuse(url);
  }
  if (parsed.host.empty()) refuse(url);
  return parsed;
}

std::string host_header(const ServerUrl& url) {
  const bool ipv6 = url.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", ipv6 ? "[" : "", url.host, ipv6 ? "]" : "", url.port);
}

}  // namespace octavo::bench
