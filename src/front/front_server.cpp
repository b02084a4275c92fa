#include "front/front_server.h"

#include <utility>

#include "front/front_routes.h"

namespace octavo::front {

FrontServer::FrontServer(std::unique_ptr<server::Listener> listener, Upstreams& upstreams,
                         FrontServerOptions options)
    : options_(std::move(options.server)),
      context_(std::make_unique<FrontContext>(listener->io(), options_, upstreams)) {
  context_->end_children = std::move(options.end_children);
  http_ = std::make_unique<server::HttpServer>(
      std::move(listener), *context_,
      server::Router(front_routes(*context_, std::move(options.more_routes)), options_));
}

FrontServer::~FrontServer() {
  // Idle connections need the io_context, which ends with http_. Open exchanges, which end with the
  // io_context, refer to the context.
  context_->connections.clear();
  http_.reset();
}

}  // namespace octavo::front
