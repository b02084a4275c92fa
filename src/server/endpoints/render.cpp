// POST /v1/completions/render, /v1/chat/completions/render and /v1/messages/render: the token ids of
// a request, for routers.
#include "api/anthropic/messages_request.h"
#include "api/openai/chat_request.h"
#include "api/openai/completion_request.h"
#include "api/render_format.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"

namespace octavo::server {

using namespace api;

namespace {

// Counts as an open request: long texts take time.
template <typename Prepare>
Awaitable<void> render(ServerContext& context, Exchange& exchange, const char* prefix, bool as_list,
                       Prepare prepare) {
  const Place place(context, exchange.request());
  const auto on_worker = [prepare, prefix, as_list, &model = context.model,
                          own_id = exchange.request().id](const Json& body,
                                                          const Preparation& preparation) {
    const GenerationJob job = prepare(body, model, preparation);
    const std::string id = prefix + (job.id.empty() ? own_id : job.id);
    if (!as_list) return dump(rendered_prompt(job, 0, id, model));
    Json list = Json::array();
    for (size_t i = 0; i < job.prompts.size(); ++i)
      list.push_back(rendered_prompt(job, i, id, model));
    return dump(list);
  };
  HttpResponse response;
  response.body = co_await with_json_body(context, exchange, on_worker);
  co_await exchange.send(std::move(response));
}

Awaitable<void> render_completion(ServerContext& context, Exchange& exchange) {
  return render(context, exchange, "cmpl-", true, prepare_completion);
}
Awaitable<void> render_chat_completion(ServerContext& context, Exchange& exchange) {
  return render(context, exchange, "chatcmpl-", false, prepare_chat);
}
Awaitable<void> render_message(ServerContext& context, Exchange& exchange) {
  return render(context, exchange, "msg_", false, prepare_messages);
}

}  // namespace

std::vector<Endpoint> render_endpoints() {
  const Json one = rendered_prompt_schema();
  const Json list = {{"type", "array"}, {"items", one}};
  return {{.method = "POST",
           .path = "/v1/completions/render",
           .handler = render_completion,
           .doc = json_operation("Token ids of a completion's prompts, without generating",
                                 schema_of(completion_fields()), list)},
          {.method = "POST",
           .path = "/v1/chat/completions/render",
           .handler = render_chat_completion,
           .doc = json_operation("Token ids of a chat completion's prompt, without generating",
                                 schema_of(chat_fields()), one)},
          {.method = "POST",
           .path = "/v1/messages/render",
           .handler = render_message,
           .doc = json_operation("Token ids of a message's prompt, without generating",
                                 schema_of(messages_fields()), one)}};
}

}  // namespace octavo::server
