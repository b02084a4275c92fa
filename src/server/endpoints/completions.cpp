// POST /v1/completions
#include <chrono>

#include "server/answer_schema.h"
#include "server/completion_format.h"
#include "server/endpoints/endpoints.h"
#include "server/server_context.h"

namespace octavo::server {
namespace {

Awaitable<void> complete(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const HttpRequest& request = exchange.request();
  require_json(request);
  const Place place(context);
  const auto prepare = [&] {
    return prepare_completion(parse_object(request.body), context.model);
  };
  CompletionJob job = co_await context.on_text_worker(prepare);
  if (job.id.empty()) job.id = request.id;
  CompletionFormat format(context.model, job);
  co_await answer(context, exchange, job, format, arrival);
}

}  // namespace

std::vector<Endpoint> completion_endpoints() {
  return {{.method = "POST",
           .path = "/v1/completions",
           .handler = complete,
           .doc = generation_operation("Continue a prompt", schema_of(completion_fields()),
                                       completion_schema())}};
}

}  // namespace octavo::server
