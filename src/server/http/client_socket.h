// client_socket.h - a client's socket with time limits, which also detects that the client has
// left. I/O thread only; owned by shared_ptr.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "server/http/exchange.h"

namespace octavo::server {

// TCP or Unix.
using Socket = boost::asio::generic::stream_protocol::socket;

class ClientSocket : public std::enable_shared_from_this<ClientSocket> {
 public:
  explicit ClientSocket(Socket socket);

  Socket& socket() { return socket_; }

  // Cancels the socket's operations if the limit passes during its lifetime.
  class TimeLimit {
   public:
    TimeLimit(ClientSocket& socket, std::chrono::milliseconds limit) : socket_(socket) {
      socket_.arm(limit);
    }
    ~TimeLimit() { socket_.disarm(); }
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;

   private:
    ClientSocket& socket_;
  };
  bool timed_out() const { return timed_out_; }

  // Between these calls, a client that closes the connection is detected.
  void watch();
  void stop_watching();
  bool client_gone() const { return client_gone_; }
  void set_client_gone();
  void on_client_gone(std::function<void()> callback) { on_client_gone_ = std::move(callback); }

  // Shuts down sending and discards what the client still sends. Closing at once could reset the
  // connection before the client has read the response.
  Awaitable<void> linger();

 private:
  void arm(std::chrono::milliseconds limit);
  void disarm();
  void look_again();
  bool at_end();
  bool has_hung_up();

  Socket socket_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer next_look_;
  boost::asio::cancellation_signal stop_watch_;
  bool timed_out_ = false;
  bool client_gone_ = false;
  std::function<void()> on_client_gone_ = nullptr;
};

}  // namespace octavo::server
