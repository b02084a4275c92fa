// POST /v1/load_lora_adapter and /v1/unload_lora_adapter
#include "api/openai/adapter_requests.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"

namespace octavo::server {

using namespace api;

namespace {

using AdapterWork = std::string (*)(const Json&, const ServedModel&, const Preparation&);

Awaitable<void> change_adapters(AdapterWork work, ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const auto on_worker = [work, &model = context.model](const Json& body,
                                                        const Preparation& preparation) {
    return work(body, model, preparation);
  };
  HttpResponse response{.content_type = "text/plain; charset=utf-8"};
  response.body = co_await with_json_body(context, exchange, on_worker);
  co_await exchange.send(std::move(response));
}

Awaitable<void> load_one(ServerContext& context, Exchange& exchange) {
  return change_adapters(load_adapter, context, exchange);
}
Awaitable<void> unload_one(ServerContext& context, Exchange& exchange) {
  const auto unload = [](const Json& body, const ServedModel& model, const Preparation&) {
    return unload_adapter(body, model);
  };
  return change_adapters(unload, context, exchange);
}

Json text_operation(const char* about, Json body) {
  Json doc = json_operation(about, std::move(body), {{"type", "string"}});
  doc["responses"]["200"]["content"] = {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  return doc;
}

}  // namespace

std::vector<Endpoint> adapter_endpoints() {
  return {{.method = "POST",
           .path = "/v1/load_lora_adapter",
           .handler = load_one,
           .doc = text_operation("Load a LoRA adapter", load_adapter_schema())},
          {.method = "POST",
           .path = "/v1/unload_lora_adapter",
           .handler = unload_one,
           .doc = text_operation("Unload a LoRA adapter", unload_adapter_schema())}};
}

}  // namespace octavo::server
