// tcp_listener.h - a bound TCP address. One thread, except where noted. No MLX.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "distributed/tcp_connection.h"

namespace octavo {

class TcpListener {
 public:
  // Listens at once. `host`: a name or an IPv4 or IPv6 address; port 0: any. Throws SetupError if
  // the address is in use, or is neither private nor loopback without `allow_public`.
  TcpListener(const std::string& host, uint16_t port, bool allow_public = false);

  uint16_t port() const { return port_; }
  // "10.0.0.1:9000" or "[fd00::1]:9000"
  std::string address() const;
  int descriptor() const { return socket_.get(); }

  // Nothing if no connection arrives until the deadline. Connections from or to addresses that are
  // neither private nor loopback are closed without `allow_public`.
  std::optional<TcpConnection> accept(SocketClock::time_point deadline);

 private:
  Descriptor socket_;
  uint16_t port_ = 0;
  std::string host_;  // as a number
  bool allow_public_;
};

}  // namespace octavo
