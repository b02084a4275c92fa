// http_server.h - accepts connections and routes their requests until it is drained. I/O thread
// only, except drain().
#pragma once

#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <memory>

#include "server/http/client_socket.h"
#include "server/http/router.h"
#include "server/http_context.h"
#include "server/listener.h"

namespace octavo::server {

class HttpServer {
 public:
  // `context` uses the listener's io_context and must outlive the server. From now on SIGTERM and
  // SIGINT drain; a second signal ends the process. Throws SetupError if it cannot listen on the
  // address.
  HttpServer(std::unique_ptr<Listener> listener, HttpContext& context, Router router);
  // Closes all open connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns after a drain.
  void run();
  const Router& router() const { return router_; }
  // Any thread. Refuses new requests; open ones have drain_timeout to finish.
  void drain();

 private:
  Awaitable<void> keep_accepting();
  Awaitable<void> accept_connections();
  Awaitable<void> serve(Socket socket);
  Awaitable<void> drain_and_stop();
  Awaitable<void> end_requests();
  Awaitable<void> wait_until_quiet(std::chrono::milliseconds limit);
  Awaitable<void> refuse(Socket socket);
  void wait_for_signal();
  void run_io();

  std::unique_ptr<Listener> listener_;
  HttpContext& context_;
  Router router_;
  std::unique_ptr<boost::asio::signal_set> signals_;
  int connections_ = 0;
  int refusing_ = 0;  // connections beyond the limit that are being refused
};

}  // namespace octavo::server
