// POST /api/chat, /api/generate, /api/embed and /api/embeddings: Ollama's API.
#include <chrono>

#include "api/ollama/ollama_embed.h"
#include "api/ollama/ollama_format.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

HttpResponse with_ignored(const ServerContext& context, std::string body,
                          const IgnoredFields& ignored) {
  HttpResponse response{.body = std::move(body)};
  add_ignored(context, ignored, response);
  return response;
}

using PrepareText = OllamaJob (*)(const Json&, const ServedModel&, const Preparation&);
using PrepareVectors = OllamaEmbedJob (*)(const Json&, const ServedModel&, const Preparation&);

Awaitable<void> generate(OllamaKind kind, PrepareText prepare, ServerContext& context,
                         Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto on_worker = [prepare, &model = context.model](const Json& body,
                                                           const Preparation& preparation) {
    return prepare(body, model, preparation);
  };
  OllamaJob job = co_await with_json_body(context, exchange, on_worker);
  if (job.id.empty()) job.id = exchange.request().id;
  OllamaFormat format(kind, context.model, job, arrival);
  if (job.loads != nullptr) {
    co_await exchange.send(with_ignored(context, format.loaded(), job.ignored));
    co_return;
  }
  co_await respond(context, exchange, job, format, arrival);
}

Awaitable<void> embed_texts(PrepareVectors prepare, ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const auto on_worker = [prepare, &model = context.model](const Json& body,
                                                           const Preparation& preparation) {
    return prepare(body, model, preparation);
  };
  OllamaEmbedJob job = co_await with_json_body(context, exchange, on_worker);
  if (job.id.empty()) job.id = exchange.request().id;
  OllamaEmbedFormat format(job, arrival);
  if (job.loads) {
    co_await exchange.send(with_ignored(context, format.whole({}, {}), job.ignored));
    co_return;
  }
  co_await respond_whole(context, exchange, job, format, arrival);
}

Awaitable<void> ollama_chat(ServerContext& context, Exchange& exchange) {
  return generate(OllamaKind::kChat, prepare_ollama_chat, context, exchange);
}
Awaitable<void> ollama_generate(ServerContext& context, Exchange& exchange) {
  return generate(OllamaKind::kGenerate, prepare_ollama_generate, context, exchange);
}
Awaitable<void> ollama_embed(ServerContext& context, Exchange& exchange) {
  return embed_texts(prepare_ollama_embed, context, exchange);
}
Awaitable<void> ollama_embeddings(ServerContext& context, Exchange& exchange) {
  return embed_texts(prepare_ollama_embeddings, context, exchange);
}

}  // namespace

std::vector<Endpoint> ollama_endpoints() {
  return {
      {.method = "POST",
       .path = "/api/chat",
       .handler = ollama_chat,
       .doc = ollama_operation("Chat (Ollama's API)", schema_of(ollama_chat_fields()),
                               ollama_answer_schema(OllamaKind::kChat))},
      {.method = "POST",
       .path = "/api/generate",
       .handler = ollama_generate,
       .doc =
           ollama_operation("Answer a prompt (Ollama's API)", schema_of(ollama_generate_fields()),
                            ollama_answer_schema(OllamaKind::kGenerate))},
      {.method = "POST",
       .path = "/api/embed",
       .handler = ollama_embed,
       .doc = json_operation("Create embeddings (Ollama's API)", schema_of(ollama_embed_fields()),
                             ollama_embed_schema())},
      {.method = "POST",
       .path = "/api/embeddings",
       .handler = ollama_embeddings,
       .doc = json_operation("Create one embedding (Ollama's earlier API)",
                             schema_of(ollama_embeddings_fields()), ollama_embeddings_schema())}};
}

}  // namespace octavo::server
