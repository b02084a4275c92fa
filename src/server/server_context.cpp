#include "server/server_context.h"

#include <fmt/format.h>

#include "base/error.h"
#include "server/output_stream.h"
#include "server/persistent_state.h"

namespace octavo::server {

ServerContext::ServerContext(boost::asio::io_context& io_context, const api::ServedModel& served,
                             const ServerOptions& server_options)
    : HttpContext(io_context, server_options),
      model(served),
      metrics(served),
      responses(server_options.stored_responses, state.get()),
      text_workers(io_context.get_executor(), server_options.text_workers),
      places_(server_options.max_open_requests),
      sequences_(server_options.max_open_sequences) {
  if (state) state->restore(responses);
}

ServerContext::~ServerContext() = default;

size_t ServerContext::cut_off_requests() {
  const std::set<OutputStream*> late = answering;
  for (OutputStream* answers : late) answers->cut_off();
  text_workers.stop_jobs("the server is shutting down");
  return late.size();
}

Allowance::Lease ServerContext::open_sequences(int64_t count, const char* param) {
  if (count > sequences_.most()) {
    throw RequestError(
        400, param,
        fmt::format("prompts x n is {}; at most {} sequences are allowed (--max-open-sequences)",
                    count, sequences_.most()));
  }
  auto lease = sequences_.try_lend(count - 1);
  if (!lease) {
    metrics.refusals(Refusal::kQueue).Increment();
    throw RequestError(
        429, "",
        fmt::format("{} sequences besides the first of each request are already open, and {} more "
                    "exceed the limit of {}; try again later",
                    sequences_.lent(), count - 1, sequences_.most()));
  }
  return std::move(*lease);
}

Place::Place(ServerContext& context, const HttpRequest& request) : context_(context) {
  if (context.draining) {
    context.metrics.refusals(Refusal::kDraining).Increment();
    throw RequestError(503, "", "the server is shutting down");
  }
  key_lease_ = lease_of_key(context, request);
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

Place::~Place() { context_.backlog.request_ended(std::chrono::steady_clock::now()); }

bool ServerContext::engine_alive() const {
  const auto silent = std::chrono::steady_clock::now() - model.engine.heartbeat();
  return silent < options.stalled_after;
}

}  // namespace octavo::server
