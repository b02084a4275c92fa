#include "server/server.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "server/endpoints/endpoints.h"

namespace octavo::server {
namespace {

// For text workers, after a drain.
constexpr std::chrono::milliseconds kTimeToEnd{1000};

}  // namespace

Server::Server(std::unique_ptr<Listener> listener, const api::ServedModel& model,
               ServerOptions options)
    : options_(std::move(options)),
      context_(std::make_unique<ServerContext>(listener->io(), model, options_)),
      http_(std::make_unique<HttpServer>(std::move(listener), *context_,
                                         Router(routes_of(all_endpoints(), *context_), options_))) {
}

Server::~Server() {
  // Text workers post to the io_context, which ends with http_.
  context_->text_workers.stop(std::chrono::hours(24 * 365));
  http_.reset();
}

bool Server::run() {
  http_->run();
  const bool ended = context_->text_workers.stop(kTimeToEnd);
  if (!ended) spdlog::warn("a text worker did not stop in time; exiting without it");
  return ended;
}

}  // namespace octavo::server
