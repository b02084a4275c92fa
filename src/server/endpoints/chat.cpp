// POST /v1/chat/completions
#include <chrono>

#include "server/answer_schema.h"
#include "server/chat_call.h"
#include "server/chat_format.h"
#include "server/endpoints/endpoints.h"
#include "server/server_context.h"

namespace octavo::server {
namespace {

Awaitable<void> chat(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const HttpRequest& request = exchange.request();
  require_json(request);
  const Place place(context);
  const auto prepare = [&] { return prepare_chat(parse_object(request.body), context.model); };
  GenerationJob job = co_await context.on_text_worker(prepare);
  if (job.id.empty()) job.id = request.id;
  ChatFormat format(context.model, job);
  co_await answer(context, exchange, job, format, arrival);
}

}  // namespace

std::vector<Endpoint> chat_endpoints() {
  return {{.method = "POST",
           .path = "/v1/chat/completions",
           .handler = chat,
           .doc = generation_operation("Answer in a conversation", schema_of(chat_fields()),
                                       chat_completion_schema())}};
}

}  // namespace octavo::server
