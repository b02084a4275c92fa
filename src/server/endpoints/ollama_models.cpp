// GET /api/tags, /api/ps and /api/version, POST /api/show: Ollama's API about the model. Its routes
// that change models are refused.
#include "api/ollama/ollama_models.h"

#include "api/generation_request.h"
#include "base/error.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"

namespace octavo::server {

using namespace api;

namespace {

HttpResponse tags(ServerContext& context, const HttpRequest&) {
  return json_response(ollama_tags(context.model));
}

HttpResponse running_models(ServerContext& context, const HttpRequest&) {
  return json_response(ollama_ps(context.model));
}

HttpResponse ollama_version(ServerContext& context, const HttpRequest&) {
  return json_response({{"version", kOllamaApiVersion}, {"octavo", context.options.version}});
}

Awaitable<void> show_model(ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const auto show = [&model = context.model](const Json& body, const Preparation&) {
    OllamaModelRequest request;
    read_fields(body, ollama_show_fields(), request);
    check_model_name(request.model, model);
    return dump(ollama_show(model));
  };
  HttpResponse response;
  response.body = co_await with_json_body(context, exchange, show);
  co_await exchange.send(std::move(response));
}

// Programs pull a model before they use it. The served one is there.
Awaitable<void> pull_model(ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const auto pull = [&model = context.model](const Json& body, const Preparation&) {
    OllamaModelRequest request;
    read_fields(body, ollama_pull_fields(), request);
    try {
      check_model_name(request.model, model);
    } catch (const RequestError&) {
      throw RequestError(
          403, "", "requests cannot download models; run `octavo pull NAME` and serve that model");
    }
    return std::string(R"({"status":"success"})");
  };
  HttpResponse response;
  response.body = co_await with_json_body(context, exchange, pull);
  co_await exchange.send(std::move(response));
}

Awaitable<void> refuse_change(const char* reason) {
  throw RequestError(403, "", reason);
  co_return;
}

HttpEndpoint refused_route(const char* method, const char* path, const char* reason) {
  return {.method = method, .path = path, .handler = [reason](HttpContext&, Exchange&) {
            return refuse_change(reason);
          }};
}

Json models_schema(const char* required) {
  const Json model = {{"type", "object"},
                      {"properties",
                       {{"name", {{"type", "string"}}},
                        {"model", {{"type", "string"}}},
                        {"size", {{"type", "integer"}}},
                        {"digest", {{"type", "string"}}},
                        {"details", {{"type", "object"}}}}},
                      {"required", {"name", "model", "size", "digest", "details", required}}};
  return {{"type", "object"},
          {"properties", {{"models", {{"type", "array"}, {"items", model}}}}},
          {"required", Json::array({"models"})}};
}

Json show_schema() {
  return {{"type", "object"},
          {"properties",
           {{"parameters", {{"type", "string"}}},
            {"template", {{"type", "string"}}},
            {"details", {{"type", "object"}}},
            {"model_info", {{"type", "object"}}},
            {"capabilities", {{"type", "array"}, {"items", {{"type", "string"}}}}},
            {"modified_at", {{"type", "string"}, {"format", "date-time"}}}}},
          {"required", {"parameters", "details", "model_info", "capabilities"}}};
}

Json text_member(const char* name) {
  return {{"type", "object"},
          {"properties", {{name, {{"type", "string"}}}}},
          {"required", Json::array({name})}};
}

}  // namespace

std::vector<HttpEndpoint> ollama_change_endpoints() {
  const char* const no_changes =
      "requests cannot change models; use `octavo pull` and `octavo rm` on the server's machine";
  return {refused_route("POST", "/api/push", no_changes),
          refused_route("POST", "/api/copy",
                        "models cannot be copied; give the model another name with "
                        "--served-model-name or an alias in --preset"),
          refused_route("POST", "/api/create",
                        "models cannot be created; set a system prompt, a template and sampling "
                        "with flags of `octavo serve` or in requests"),
          refused_route("POST", "/api/blobs/{digest}", no_changes),
          refused_route("DELETE", "/api/delete", no_changes)};
}

std::vector<Endpoint> ollama_model_endpoints() {
  return {
      simple_endpoint("GET", "/api/tags", tags,
                      operation("List models (Ollama's API)", models_schema("modified_at"))),
      simple_endpoint("GET", "/api/ps", running_models,
                      operation("List loaded models (Ollama's API)", models_schema("expires_at"))),
      simple_endpoint("GET", "/api/version", ollama_version,
                      operation("The version of Ollama whose API this is", text_member("version"))),
      {.method = "POST",
       .path = "/api/show",
       .handler = show_model,
       .doc = json_operation("Describe a model (Ollama's API)", schema_of(ollama_show_fields()),
                             show_schema())},
      {.method = "POST",
       .path = "/api/pull",
       .handler = pull_model,
       .doc = json_operation("Succeeds for the served model; nothing is downloaded",
                             schema_of(ollama_pull_fields()), text_member("status"))}};
}

}  // namespace octavo::server
