// server.h - the HTTP server of a model.
//
// Threads: run() is the I/O thread, which owns every connection; text workers tokenize and render;
// the engine's thread passes updates through mailboxes. Nothing else is shared.
#pragma once

#include <memory>

#include "server/batches/batch_runner.h"
#include "server/http_server.h"
#include "server/server_context.h"

namespace octavo::server {

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
  void drain() { http_->drain(); }

 private:
  void make_batch_runner();

  ServerOptions options_;
  std::unique_ptr<ServerContext> context_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<BatchRunner> batches_;  // null without --state-dir
};

}  // namespace octavo::server
