// network_address.h - the addresses of a cluster's machines, and which of them are private. Any
// thread. No MLX.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

struct NetworkAddress {
  std::string host = {};
  uint16_t port = 0;

  // "10.0.0.1:7000", "[fd00::1]:7000"
  std::string text() const;
  bool operator==(const NetworkAddress&) const = default;
};

// Reads the form of text(), or a host name and a port. Throws SetupError that names `flag`.
NetworkAddress parse_network_address(std::string_view text, std::string_view flag);

// Whether a numeric address is not routed on the internet: loopback, private (RFC 1918, RFC 4193),
// link-local, or shared (RFC 6598, which overlay networks use). False for 0.0.0.0 and ::.
bool is_private_address(const std::string& ip);

// Returns the numeric address of `host`, a name or an address. Throws SetupError that names `flag`
// if there is none, or if it is public and `allow_public` is false.
std::string private_address_of(const std::string& host, std::string_view flag, bool allow_public);

}  // namespace octavo
