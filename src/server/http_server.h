// http_server.h - serves an address until it is drained. I/O thread
// only, except drain().
#pragma once

#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <memory>

#include "server/connection_acceptor.h"
#include "server/http_context.h"

namespace octavo::server {

// Before other threads start: SIGHUP stays pending until an HttpServer handles it, instead of ending a
// process that still loads its model.
void hold_hangups();

class HttpServer {
 public:
  // `context` uses the listener's io_context and must outlive the server. From now on SIGTERM and
  // SIGINT drain; a second signal ends the process. SIGHUP reads the API keys again, if the options
  // say how. Throws SetupError if it cannot listen on the
  // address.
  HttpServer(std::unique_ptr<Listener> listener, HttpContext& context, Router router);
  // Closes all open connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns after a drain.
  void run();
  const Router& router() const { return acceptor_->router(); }
  // Any thread. After drain_delay, refuses new requests; open ones have drain_timeout to finish.
  void drain();

 private:
  Awaitable<void> drain_and_stop();
  Awaitable<void> end_requests();
  Awaitable<void> wait_until_quiet(std::chrono::milliseconds limit);
  Awaitable<void> wait_for_routers();
  void wait_for_signal();
  void handle_hangups();
  void wait_for_hangup();
  void run_io();

  boost::asio::io_context& io() { return acceptor_->listener().io(); }

  HttpContext& context_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<boost::asio::signal_set> signals_;
  std::unique_ptr<boost::asio::signal_set> hangups_;  // null: SIGHUP is not handled
  bool stopping_ = false;
};

}  // namespace octavo::server
