#include "server/server.h"

#include <algorithm>
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
      http_(std::make_unique<HttpServer>(
          std::move(listener), *context_,
          Router(routes_of(all_endpoints(options_.allow_lora_updates), *context_), options_))) {
  if (context_->state) make_batch_runner();
}

void Server::make_batch_runner() {
  // Lines of batches take places of max_open_requests, of which half remain for other requests.
  const int most = std::max(1, options_.max_open_requests / 2);
  batches_ = std::make_unique<BatchRunner>(
      context_->io, *context_->state, context_->tenants, context_->bodies,
      [this](Exchange& exchange) { return http_->router().dispatch(*context_, exchange); },
      BatchRunnerOptions{.concurrency = std::min(options_.state.batch_concurrency, most),
                         .line_bytes = options_.limits.body_bytes});
  context_->batches = batches_.get();
}

Server::~Server() {
  // Text workers post to the io_context, which ends with http_.
  context_->text_workers.stop(std::chrono::hours(24 * 365));
  if (context_->state) context_->state->stop();
  if (batches_) batches_->release();
  http_.reset();
}

bool Server::run() {
  if (batches_) batches_->start();
  http_->run();
  const bool ended = context_->text_workers.stop(kTimeToEnd);
  if (context_->state) context_->state->stop();
  if (!ended) spdlog::warn("a text worker did not stop in time; exiting without it");
  return ended;
}

}  // namespace octavo::server
