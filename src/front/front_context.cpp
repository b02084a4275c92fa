#include "front/front_context.h"

#include <fmt/format.h>

#include "base/error.h"
#include "front/relay.h"

namespace octavo::front {

using server::Refusal;

FrontMetrics::FrontMetrics()
    : HttpMetrics({}),
      resumed_streams(
          counter("octavo:front_resumed_streams_total",
                  "Streams that the front continued on another process of their model")),
      resent_requests(
          counter("octavo:front_resent_requests_total",
                  "Requests that the front sent again because the process of their model ended")) {}

FrontContext::FrontContext(boost::asio::io_context& io_context,
                           const server::ServerOptions& server_options, Upstreams& children)
    : HttpContext(io_context, server_options),
      upstreams(children),
      connections(io_context),
      places_(server_options.max_open_requests) {}

size_t FrontContext::cut_off_requests() {
  const std::set<Relay*> late = relays;
  for (Relay* relay : late) relay->cut_off();
  return late.size();
}

Awaitable<void> FrontContext::requests_ended() {
  if (end_children) co_await end_children();
}

FrontContext::Place::Place(FrontContext& context, const server::HttpRequest& request)
    : context_(context) {
  if (context.draining) {
    context.metrics.refusals(Refusal::kDraining).Increment();
    throw RequestError(503, "", "the server is shutting down");
  }
  key_lease_ = server::lease_of_key(context, request);
  auto lease = context.places_.try_lend(1);
  if (!lease) {
    context.metrics.refusals(Refusal::kQueue).Increment();
    throw RequestError(
        429, "",
        fmt::format("{} requests are already open, which is the limit; try again later",
                    context.places_.lent()));
  }
  lease_ = std::move(*lease);
}

FrontContext::Place::~Place() { context_.backlog_.request_ended(std::chrono::steady_clock::now()); }

}  // namespace octavo::front
