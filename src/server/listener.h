// listener.h - the address of a server, a port or a Unix socket, and the I/O context of its
// connections.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

namespace octavo::server {

// TCP or Unix.
using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

// Binds the address before the model is loaded, so that an address in use is reported at once. Does
// not accept connections yet.
class Listener {
 public:
  // Throws SetupError naming the flag to change.
  Listener(const std::string& host, uint16_t port);
  // A Unix socket that only this user can connect to. Replaces the socket file of a server that has
  // ended. Throws SetupError if another server listens there, or if the file is not a socket.
  explicit Listener(std::string uds);
  // Removes the socket file.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  boost::asio::io_context& io() { return io_; }
  Acceptor& acceptor() { return acceptor_; }
  uint16_t port() const { return port_; }  // 0: a Unix socket
  const std::string& uds() const { return uds_; }
  // "http://127.0.0.1:8000" or "unix:/run/octavo.sock"
  const std::string& url() const { return url_; }
  // The arguments of curl that name the server: the URL, or --unix-socket PATH http://localhost.
  std::string curl_target() const;

 private:
  boost::asio::io_context io_{1};
  Acceptor acceptor_{io_};
  uint16_t port_ = 0;
  std::string uds_;
  std::string url_;
};

// "127.0.0.1", "::1" or "localhost".
bool is_loopback(const std::string& host);

}  // namespace octavo::server
