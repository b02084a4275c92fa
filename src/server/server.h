// server.h - the HTTP server: accepts connections and serves requests until it is drained.
//
// Threads: run() is the I/O thread, which owns every connection; text workers tokenize and render;
// the engine's thread passes updates through mailboxes. Nothing else is shared.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>

#include "server/batches/batch_runner.h"
#include "server/http/router.h"
#include "server/server_context.h"

namespace octavo::server {

// Binds the address before the model is loaded, so that a port in use is reported at once. Does not
// accept connections yet.
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
  // `model` must outlive the server. From now on SIGTERM and SIGINT drain; a second signal ends the
  // process. Throws SetupError if it cannot listen on the address.
  Server(std::unique_ptr<Listener> listener, const api::ServedModel& model, ServerOptions options);
  // Closes all open connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns after a drain. False if a text worker did not end within a second: the process has to
  // exit without destroying the server, whose destructor would wait for it.
  bool run();
  // Any thread. Refuses new requests; open ones have drain_timeout to finish.
  void drain();

 private:
  void make_batch_runner();
  Awaitable<void> keep_accepting();
  Awaitable<void> accept_connections();
  Awaitable<void> serve(boost::asio::ip::tcp::socket socket);
  Awaitable<void> drain_and_stop();
  Awaitable<void> end_requests();
  Awaitable<void> wait_until_quiet(std::chrono::milliseconds limit);
  Awaitable<void> refuse(boost::asio::ip::tcp::socket socket);
  void wait_for_signal();
  void run_io();

  std::unique_ptr<Listener> listener_;
  ServerOptions options_;
  std::unique_ptr<ServerContext> context_;
  Router router_;
  std::unique_ptr<BatchRunner> batches_;  // null without --state-dir
  std::unique_ptr<boost::asio::signal_set> signals_;
  int connections_ = 0;
  int refusing_ = 0;  // connections beyond the limit that are being refused
};

}  // namespace octavo::server
