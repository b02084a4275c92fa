// GET /livez, /readyz, /health and /ping: probes, which need no key.
#include "api/api_error.h"
#include "generation/grammar_compiler.h"
#include "server/endpoints/endpoints.h"
#include "server/http/error_response.h"
#include "server/server_context.h"
#include "text/chat_template.h"

namespace octavo::server {

using namespace api;

namespace {

HttpResponse alive(ServerContext& context, const HttpRequest&) {
  if (!context.engine_alive()) return error_response(503, "the engine is not making progress");
  return json_response({{"status", "ok"}});
}

bool helpers_available(const ServedModel& model) {
  const auto& chat = model.text.chat_template;
  return (!chat || chat->helpers_available()) &&
         (!model.grammars || model.grammars->helpers_available());
}

// Routers check it, so it fails with --drain-delay as soon as no more requests should come.
HttpResponse healthy(ServerContext& context, const HttpRequest& request) {
  if (context.leaving) return error_response(503, "the server is shutting down");
  return alive(context, request);
}

HttpResponse ready(ServerContext& context, const HttpRequest& request) {
  if (context.leaving || context.draining)
    return error_response(503, "the server is shutting down");
  if (context.queue_full()) return error_response(503, "the limit of open requests is reached");
  if (context.text_workers.busy_for(context.options.stuck_after) > 0)
    return error_response(503, "a text worker is stuck on one request");
  if (!helpers_available(context.model))
    return error_response(503,
                          "helper processes cannot be started; if the program was replaced, "
                          "restart the server");
  return alive(context, request);
}

}  // namespace

std::vector<Endpoint> health_endpoints() {
  const Json schema = {{"type", "object"},
                       {"properties", {{"status", {{"type", "string"}}}}},
                       {"required", {"status"}}};
  const auto probe = [&](const char* method, const char* path, auto answer, const char* about) {
    Endpoint endpoint = simple_endpoint(method, path, answer, operation(about, schema));
    endpoint.needs_key = false;
    return endpoint;
  };
  return {probe("GET", "/livez", alive, "Whether the engine makes progress"),
          probe("GET", "/readyz", ready, "Whether the server accepts requests"),
          probe("GET", "/health", healthy,
                "Same as /livez, under vLLM's name; fails during --drain-delay"),
          probe("GET", "/ping", alive, "Same as /livez, under SageMaker's name"),
          probe("POST", "/ping", alive, "Same as /livez, under SageMaker's name")};
}

}  // namespace octavo::server
