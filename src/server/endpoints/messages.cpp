// POST /v1/messages and /v1/messages/count_tokens: Anthropic's API. GET /api/hello.
#include <chrono>
#include <utility>

#include "api/anthropic/messages_format.h"
#include "api/anthropic/messages_request.h"
#include "api/openai/response_schema.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

Awaitable<void> message(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto prepare = [&model = context.model](const Json& body, const Preparation& preparation) {
    return prepare_messages(body, model, preparation);
  };
  GenerationJob job = co_await with_json_body(context, exchange, prepare);
  if (job.id.empty()) job.id = exchange.request().id;
  MessagesFormat format(context.model, job);
  co_await respond(context, exchange, job, format, arrival);
}

Awaitable<void> count_tokens(ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const auto count = [&model = context.model](const Json& body, const Preparation& preparation) {
    return count_message_tokens(body, model, preparation);
  };
  const Json counted = co_await with_json_body(context, exchange, count);
  co_await exchange.send(json_response(counted));
}

HttpResponse hello(ServerContext&, const HttpRequest&) {
  return json_response({{"message", "hello"}});
}

}  // namespace

std::vector<Endpoint> message_endpoints() {
  const Json body = schema_of(messages_fields());
  const Json count = {{"type", "object"},
                      {"properties", {{"input_tokens", {{"type", "integer"}}}}},
                      {"required", Json::array({"input_tokens"})}};
  // Claude Code sends HEAD without a key, to be connected before its first request.
  Endpoint greeting =
      simple_endpoint("GET", "/api/hello", hello,
                      operation("Whether a server listens, for Claude Code", {{"type", "object"}}));
  greeting.needs_key = false;
  return {
      {.method = "POST",
       .path = "/v1/messages",
       .handler = message,
       .doc = generation_operation("Create a message (Anthropic's API)", body, message_schema())},
      {.method = "POST",
       .path = "/v1/messages/count_tokens",
       .handler = count_tokens,
       .doc = json_operation("Count the input tokens of a message", body, count)},
      std::move(greeting)};
}

}  // namespace octavo::server
