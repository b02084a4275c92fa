#include "server/http/allowed_hosts.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "server/http/http.h"

namespace octavo::server {
namespace {

namespace ip = boost::asio::ip;

// "name:8000" to "name", "[::1]:8000" to "[::1]". Anything but digits after the colon stays.
std::string_view without_port(std::string_view host) {
  const size_t colon = host.find_last_of(":]");
  if (colon == std::string_view::npos || host[colon] == ']') return host;
  if (host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) return host;
  return host.substr(0, colon);
}

bool is_address(std::string_view host) {
  boost::system::error_code error;
  if (host.starts_with('[') && host.ends_with(']')) {
    ip::make_address_v6(std::string(host.substr(1, host.size() - 2)), error);
  } else {
    ip::make_address_v4(std::string(host), error);
  }
  return !error;
}

}  // namespace

AllowedHosts::AllowedHosts(const std::string& listening, const std::vector<std::string>& names)
    : names_{"localhost", listening} {
  for (const std::string& name : names) {
    const std::string_view host = without_port(trimmed(name));
    if (host == "*") all_ = true;
    if (!host.empty()) names_.emplace_back(host);
  }
}

bool AllowedHosts::allow(std::string_view host) const {
  const std::string_view name = without_port(host);
  return all_ || host.empty() || is_address(name) ||
         std::ranges::any_of(
             names_, [&](const std::string& known) { return equal_ignoring_case(known, name); });
}

}  // namespace octavo::server
