// connection_acceptor.h - accepts the connections of one address and serves them. I/O thread only.
#pragma once

#include <memory>

#include "server/http/client_socket.h"
#include "server/http/router.h"
#include "server/http_context.h"
#include "server/listener.h"

namespace octavo::server {

class ConnectionAcceptor {
 public:
  // `context` must outlive the connections. Throws SetupError if it cannot listen on the address.
  ConnectionAcceptor(std::unique_ptr<Listener> listener, HttpContext& context, Router router);

  ~ConnectionAcceptor() { close(); }
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Accepts from now on, while the I/O context runs.
  void start();
  // After the I/O context has run for the last time. Destroys the listener, and with it the open
  // connections if the I/O context is its own. If it is not, they refer to this object until that
  // context is destroyed.
  void close() { listener_.reset(); }
  Listener& listener() { return *listener_; }
  const Router& router() const { return router_; }

 private:
  Awaitable<void> keep_accepting();
  Awaitable<void> accept_connections();
  Awaitable<void> serve(Socket socket);
  Awaitable<void> refuse(Socket socket);

  std::unique_ptr<Listener> listener_;
  HttpContext& context_;
  Router router_;
  int connections_ = 0;
  int refusing_ = 0;  // connections beyond the limit that are being refused
};

}  // namespace octavo::server
