// POST /v1/embeddings
#include <chrono>

#include "api/openai/embedding_format.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

Awaitable<void> embed(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto prepare = [&model = context.model](const Json& body, const Preparation& preparation) {
    return prepare_embedding(body, model, preparation);
  };
  EmbeddingJob job = co_await with_json_body(context, exchange, prepare);
  if (job.id.empty()) job.id = exchange.request().id;
  EmbeddingFormat format(context.model, job);
  co_await respond_whole(context, exchange, job, format, arrival);
}

}  // namespace

std::vector<Endpoint> embedding_endpoints() {
  return {{.method = "POST",
           .path = "/v1/embeddings",
           .handler = embed,
           .doc = json_operation("Create embeddings", schema_of(embedding_fields()),
                                 embedding_schema())}};
}

}  // namespace octavo::server
