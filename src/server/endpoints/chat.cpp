// POST /v1/chat/completions
#include <chrono>

#include "api/openai/chat_format.h"
#include "api/openai/chat_request.h"
#include "api/openai/response_schema.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

Awaitable<void> chat(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto prepare = [&model = context.model](const Json& body, const Preparation& preparation) {
    return prepare_chat(body, model, preparation);
  };
  GenerationJob job = co_await with_json_body(context, exchange, prepare);
  if (job.id.empty()) job.id = exchange.request().id;
  ChatFormat format(context.model, job);
  co_await respond(context, exchange, job, format, arrival);
}

}  // namespace

std::vector<Endpoint> chat_endpoints() {
  return {{.method = "POST",
           .path = "/v1/chat/completions",
           .handler = chat,
           .doc = generation_operation("Create a chat completion", schema_of(chat_fields()),
                                       chat_completion_schema())}};
}

}  // namespace octavo::server
