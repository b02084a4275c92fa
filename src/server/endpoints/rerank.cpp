// POST /v1/rerank and /v1/score, and their other paths.
#include <chrono>

#include "api/openai/score_format.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

Awaitable<void> rerank(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto prepare = [&model = context.model](const Json& body, const Preparation& preparation) {
    return prepare_rerank(body, model, preparation);
  };
  RerankJob job = co_await with_json_body(context, exchange, prepare);
  if (job.id.empty()) job.id = exchange.request().id;
  RerankFormat format(context.model, job);
  co_await respond_whole(context, exchange, job, format, arrival);
}

Awaitable<void> score(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto prepare = [&model = context.model](const Json& body, const Preparation& preparation) {
    return prepare_score(body, model, preparation);
  };
  ScoringJob job = co_await with_json_body(context, exchange, prepare);
  if (job.id.empty()) job.id = exchange.request().id;
  ScoreFormat format(context.model, job);
  co_await respond_whole(context, exchange, job, format, arrival);
}

}  // namespace

std::vector<Endpoint> rerank_endpoints() {
  std::vector<Endpoint> endpoints;
  for (const char* path : {"/v1/rerank", "/rerank", "/v2/rerank"})
    endpoints.push_back({.method = "POST",
                         .path = path,
                         .handler = rerank,
                         .doc = json_operation("Order documents by relevance to a query",
                                               schema_of(rerank_fields()), rerank_schema())});
  for (const char* path : {"/v1/score", "/score"})
    endpoints.push_back(
        {.method = "POST",
         .path = path,
         .handler = score,
         .doc = json_operation("Score pairs of texts", schema_of(score_fields()), score_schema())});
  return endpoints;
}

}  // namespace octavo::server
