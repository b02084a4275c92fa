// front_server.h - the HTTP server of a front process. I/O thread only, except drain(). No MLX.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "front/front_context.h"
#include "front/upstreams.h"
#include "server/http_server.h"

namespace octavo::front {

struct FrontServerOptions {
  server::ServerOptions server = {};
  // Routes besides the relayed ones, those of health, metrics and the playground. They come first.
  std::vector<server::Route> more_routes = {};
  // Ends the children. Runs after the last request of a drain, before run() returns.
  std::function<Awaitable<void>()> end_children = nullptr;
};

class FrontServer {
 public:
  // `upstreams` uses the listener's io_context and must outlive the server. As HttpServer, handles
  // SIGTERM and SIGINT.
  FrontServer(std::unique_ptr<server::Listener> listener, Upstreams& upstreams,
              FrontServerOptions options);
  // Destroys the io_context with all that waits in it. If `upstreams` has timers or sockets of the
  // io_context, the process must exit after run() without destroying the server.
  ~FrontServer();
  FrontServer(const FrontServer&) = delete;
  FrontServer& operator=(const FrontServer&) = delete;

  // Returns after a drain.
  void run() { http_->run(); }
  // Any thread.
  void drain() { http_->drain(); }

  FrontContext& context() { return *context_; }

 private:
  server::ServerOptions options_;
  std::unique_ptr<FrontContext> context_;
  std::unique_ptr<server::HttpServer> http_;
};

}  // namespace octavo::front
