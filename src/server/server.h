// server.h - the HTTP server: accepts connections, answers until it is told to drain.
//
// Threads: run() is the I/O thread, which owns every connection; text workers tokenize and render;
// the engine's own thread hands updates over through mailboxes. Nothing else is shared.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>

#include "server/http/router.h"
#include "server/server_context.h"

namespace octavo::server {

// The address, taken before the model is loaded, so that a port in use is known at once. Answers
// nobody yet.
class Listener {
 public:
  // Throws SetupError naming the flag to change.
  Listener(const std::string& host, uint16_t port);

  uint16_t port() const { return port_; }
  // "http://127.0.0.1:8000"
  std::string url() const;

 private:
  friend class Server;
  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  uint16_t port_ = 0;
};

// "127.0.0.1", "::1" or "localhost".
bool is_loopback(const std::string& host);

class Server {
 public:
  // `model` must outlive the server. From here on SIGTERM and SIGINT drain; a second one ends the
  // process. Throws SetupError when the address cannot be listened on.
  Server(std::unique_ptr<Listener> listener, const api::ServedModel& model, ServerOptions options);
  // Cuts off whatever is still open.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until a drain ends.
  void run();
  // Any thread: no new requests; those that are open have drain_timeout to end.
  void drain();

 private:
  Awaitable<void> accept_connections();
  Awaitable<void> serve(boost::asio::ip::tcp::socket socket);
  Awaitable<void> drain_and_stop();
  Awaitable<void> wait_until_quiet(std::chrono::milliseconds limit);
  Awaitable<void> refuse(boost::asio::ip::tcp::socket socket);
  void wait_for_signal();

  std::unique_ptr<Listener> listener_;
  ServerOptions options_;
  std::unique_ptr<ServerContext> context_;
  Router router_;
  std::unique_ptr<boost::asio::signal_set> signals_;
  int connections_ = 0;
  int refusing_ = 0;  // connections beyond those, being told so
};

}  // namespace octavo::server
