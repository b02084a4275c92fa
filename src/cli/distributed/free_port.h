// free_port.h - a TCP port that is free now. Any thread. No MLX.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace octavo {

// Nothing if `ip` is not a numeric address of this machine.
inline std::optional<uint16_t> free_port(const std::string& ip) {
  namespace asio = boost::asio;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(ip, error);
  if (error) return std::nullopt;
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io);
  const asio::ip::tcp::endpoint endpoint(address, 0);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  if (error) return std::nullopt;
  return acceptor.local_endpoint().port();
}

}  // namespace octavo
