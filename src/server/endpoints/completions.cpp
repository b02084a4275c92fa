// POST /v1/completions
#include <chrono>

#include "api/openai/completion_format.h"
#include "api/openai/response_schema.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

Awaitable<void> complete(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto prepare = [&model = context.model](const Json& body, const Preparation& preparation) {
    return prepare_completion(body, model, preparation);
  };
  CompletionJob job = co_await with_json_body(context, exchange, prepare);
  if (job.id.empty()) job.id = exchange.request().id;
  CompletionFormat format(context.model, job);
  co_await respond(context, exchange, job, format, arrival);
}

}  // namespace

std::vector<Endpoint> completion_endpoints() {
  return {{.method = "POST",
           .path = "/v1/completions",
           .handler = complete,
           .doc = generation_operation("Create a completion", schema_of(completion_fields()),
                                       completion_schema())}};
}

}  // namespace octavo::server
