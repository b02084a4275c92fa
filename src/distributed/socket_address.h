// socket_address.h - IPv4 and IPv6 addresses of sockets. Immutable values. No MLX.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);

  // All addresses of a name or number. Throws SetupError if it is unknown.
  static std::vector<SocketAddress> resolve(const std::string& host, uint16_t port,
                                            bool for_listening);
  static SocketAddress of_peer(int socket);
  static SocketAddress of_local(int socket);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  std::string host() const;  // as a number
  // Of a network that is not the internet: loopback, RFC 1918, link-local, shared (RFC 6598), or
  // unique local.
  bool is_private() const;

 private:
  sockaddr_storage storage_ = {};
  socklen_t length_ = 0;
};

// "10.0.0.1:9000" or "[fd00::1]:9000".
std::string join_address(std::string_view host, uint16_t port);
// The reverse. Throws WireError if it is neither.
std::pair<std::string, uint16_t> split_address(std::string_view address);

}  // namespace octavo
