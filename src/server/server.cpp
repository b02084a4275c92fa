#include "server/server.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "server/batches/make_batch_runner.h"
#include "server/endpoints/endpoints.h"
#include "server/persistent_state.h"

namespace octavo::server {
namespace {

// For text workers, after a drain.
constexpr std::chrono::milliseconds kTimeToEnd{1000};

}  // namespace

Server::Server(std::unique_ptr<Listener> listener, const api::ServedModel& model,
               ServerOptions options)
    : options_(std::move(options)),
      context_(std::make_unique<ServerContext>(listener->io(), model, options_)),
      http_(std::make_unique<HttpServer>(
          std::move(listener), *context_,
          Router(routes_of(all_endpoints(options_.allow_lora_updates), *context_), options_))) {
  batches_ = make_batch_runner(*context_, http_->router());
}

void Server::add_internal(std::unique_ptr<Listener> listener) {
  ServerOptions options = options_;
  options.api_keys.clear();
  options.host = options_.internal_host;
  const bool share_pages = options_.peer_secret && context_->model.disk != nullptr;
  internal_ = std::make_unique<ConnectionAcceptor>(
      std::move(listener), *context_,
      Router(routes_of(internal_endpoints(share_pages), *context_), options));
}

Server::~Server() {
  // Text workers post to the io_context, which ends with http_.
  context_->text_workers.stop(std::chrono::hours(24 * 365));
  if (context_->state) context_->state->stop();
  if (batches_) batches_->release();
  if (internal_) internal_->close();
  http_.reset();
}

bool Server::run() {
  if (batches_) batches_->start();
  if (internal_) internal_->start();
  http_->run();
  const bool ended = context_->text_workers.stop(kTimeToEnd);
  if (context_->state) context_->state->stop();
  if (!ended) spdlog::warn("a text worker did not stop in time; exiting without it");
  return ended;
}

}  // namespace octavo::server
