// POST /tokenize and /detokenize
#include "api/openai/token_requests.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"

namespace octavo::server {

using namespace api;

namespace {

using Work = Json (*)(const Json&, const ServedModel&, const Preparation&);

// Counts as an open request: long texts take time.
Awaitable<void> run(Work work, ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const auto on_worker = [work, &model = context.model](const Json& body,
                                                        const Preparation& preparation) {
    return dump(work(body, model, preparation));
  };
  HttpResponse response;
  response.body = co_await with_json_body(context, exchange, on_worker);
  co_await exchange.send(std::move(response));
}

Awaitable<void> tokenize(ServerContext& context, Exchange& exchange) {
  return run(tokenize_text, context, exchange);
}
Awaitable<void> detokenize(ServerContext& context, Exchange& exchange) {
  return run(detokenize_tokens, context, exchange);
}

Json tokens_answer() {
  return {{"type", "object"},
          {"properties",
           {{"count", {{"type", "integer"}}},
            {"max_model_len", {{"type", "integer"}}},
            {"tokens", {{"type", "array"}, {"items", {{"type", "integer"}}}}},
            {"token_strs", {{"type", "array"}, {"items", {{"type", "string"}}}}}}},
          {"required", {"count", "max_model_len", "tokens"}}};
}

}  // namespace

std::vector<Endpoint> token_endpoints() {
  const Json text = {{"type", "object"},
                     {"properties", {{"prompt", {{"type", "string"}}}}},
                     {"required", {"prompt"}}};
  return {{.method = "POST",
           .path = "/tokenize",
           .handler = tokenize,
           .doc = json_operation("Convert text to token ids", tokenize_schema(), tokens_answer())},
          {.method = "POST",
           .path = "/detokenize",
           .handler = detokenize,
           .doc = json_operation("Convert token ids to text", detokenize_schema(), text)}};
}

}  // namespace octavo::server
