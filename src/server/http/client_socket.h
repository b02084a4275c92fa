// client_socket.h - a client's socket with time limits, and an eye on whether the client is still
// there. I/O thread only; owned by shared_ptr.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "server/http/exchange.h"

namespace octavo::server {

class ClientSocket : public std::enable_shared_from_this<ClientSocket> {
 public:
  explicit ClientSocket(boost::asio::ip::tcp::socket socket);

  boost::asio::ip::tcp::socket& socket() { return socket_; }

  // While one lives, what the socket does is cancelled when the time is up.
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

  // Between the two, a client that closes its end is noticed.
  void watch();
  void stop_watching();
  bool client_gone() const { return client_gone_; }
  void set_client_gone();
  void on_client_gone(std::function<void()> callback) { on_client_gone_ = std::move(callback); }

  // Says that nothing more will come, and throws away what the client still sends: closing at once
  // could take the answer from it before it has read it.
  Awaitable<void> linger();

 private:
  void arm(std::chrono::milliseconds limit);
  void disarm();
  void look_again();
  bool at_end();
  bool has_hung_up();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer next_look_;
  boost::asio::cancellation_signal stop_watch_;
  bool timed_out_ = false;
  bool client_gone_ = false;
  std::function<void()> on_client_gone_ = nullptr;
};

}  // namespace octavo::server
