#include "front/model_routes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "api/fields/operation.h"
#include "api/model_modalities.h"
#include "front/model_events.h"
#include "server/http/endpoint.h"

namespace octavo::front {
namespace {

using api::Json;
using server::Exchange;
using server::Route;

constexpr size_t kLongestBody = 64u << 10;

int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// As a client sees it: the fraction of the stage that is done.
double fraction(const ChildProgress& progress) {
  if (progress.total == 0) return 0;
  const double value = static_cast<double>(progress.done) / static_cast<double>(progress.total);
  return std::round(value * 1000) / 1000;
}

Json progress_json(const ChildProgress& progress) {
  return {{"stages", {"text_model"}}, {"current", "text_model"}, {"value", fraction(progress)}};
}

Json status_json(const ModelStatus& status) {
  Json json = {{"value", status.value}};
  if (status.value == "loading" && status.progress.stage == "load")
    json["progress"] = progress_json(status.progress);
  if (status.value == "unloaded" && !status.error.empty()) {
    json["failed"] = true;
    json["exit_code"] = status.exit_code;
    json["error"] = status.error;
  }
  return json;
}

Json ps_json(const ModelPool& pool) {
  Json models = Json::array();
  const auto now = std::chrono::steady_clock::now();
  for (const ModelStatus& status : pool.running()) {
    if (!status.loaded) continue;
    Json expires = nullptr;
    if (status.loaded->expires)
      expires = std::max(0.0, std::chrono::duration<double>(*status.loaded->expires - now).count());
    models.push_back({{"name", status.model->name},
                      {"status", status.value},
                      {"bytes", status.loaded->planned_bytes},
                      {"open_requests", status.loaded->open_requests},
                      {"expires_in", std::move(expires)},
                      {"pinned", status.model->pinned},
                      {"max_model_len", status.max_model_len},
                      {"pid", status.pid}});
  }
  return {{"models", std::move(models)},
          {"used_bytes", pool.used_bytes()},
          {"budget_bytes", pool.budget_bytes()}};
}

std::string model_in_body(Exchange& exchange) {
  server::require_json(exchange.request());
  const server::HeldBody body = exchange.take_body();
  if (body.text.size() > kLongestBody) throw RequestError(413, "", "the body is too large");
  const Json json = api::parse_object(body.text);
  const auto model = json.find("model");
  if (model == json.end() || !model->is_string())
    throw RequestError(400, "model", "must be the name of a model");
  return model->get<std::string>();
}

// Responses are made outside of coroutines: gcc 12 does not compile lists of initialisers in them.
server::HttpResponse list_response(const std::vector<ModelStatus>& statuses, int64_t created) {
  Json data = Json::array();
  for (const ModelStatus& status : statuses) {
    data.push_back(model_card(status, created));
    for (const api::AdapterSource& adapter : status.model->adapters)
      data.push_back(adapter_card(adapter, status, created));
  }
  return server::json_response({{"object", "list"}, {"data", std::move(data)}});
}

server::HttpResponse success_response() { return server::json_response({{"success", true}}); }

server::HttpResponse event_stream_head() {
  return {.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}};
}

class ModelHandlers {
 public:
  ModelHandlers(ModelPool& pool, ModelRouteOptions options)
      : pool_(&pool), options_(std::move(options)), created_(unix_seconds()) {}

  Awaitable<void> list(Exchange& exchange) const {
    const std::vector<ModelStatus> statuses = co_await pool_->statuses();
    co_await exchange.send(list_response(statuses, created_));
  }

  Awaitable<void> one(Exchange& exchange) const {
    std::string name = exchange.request().path.substr(std::string_view("/v1/models/").size());
    const ModelStatus status = co_await pool_->status(std::move(name));
    co_await exchange.send(server::json_response(model_card(status, created_)));
  }

  Awaitable<void> load(Exchange& exchange) const {
    std::string model = model_in_body(exchange);
    co_await pool_->load(std::move(model));
    co_await exchange.send(success_response());
  }

  Awaitable<void> unload(Exchange& exchange) const {
    std::string model = model_in_body(exchange);
    co_await pool_->unload(std::move(model));
    co_await exchange.send(success_response());
  }

  Awaitable<void> ps(Exchange& exchange) const {
    co_await exchange.send(server::json_response(ps_json(*pool_)));
  }

  Awaitable<void> events(Exchange& exchange) const {
    ModelEvents events(*pool_, options_);
    co_await exchange.start_stream(event_stream_head());
    while (!exchange.client_gone()) {
      const std::string text = co_await events.next();
      if (text.empty()) co_return;
      co_await exchange.write(text);
    }
  }

 private:
  ModelPool* pool_;
  ModelRouteOptions options_;
  int64_t created_;
};

Json object_schema(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Json properties = Json::object();
  for (const auto& [name, type] : fields) properties[name] = {{"type", type}};
  return {{"type", "object"}, {"properties", std::move(properties)}};
}

Json card_schema() {
  Json schema = object_schema({{"id", "string"},
                               {"object", "string"},
                               {"created", "integer"},
                               {"owned_by", "string"},
                               {"root", "string"},
                               {"aliases", "array"},
                               {"status", "object"},
                               {"max_model_len", "integer"},
                               {"architecture", "object"}});
  schema["required"] = {"id", "object", "created", "owned_by", "status"};
  return schema;
}

Json list_schema() {
  Json schema = object_schema({{"object", "string"}, {"data", "array"}});
  schema["properties"]["data"]["items"] = card_schema();
  schema["required"] = {"object", "data"};
  return schema;
}

Json model_schema() {
  Json schema = object_schema({{"model", "string"}});
  schema["required"] = {"model"};
  return schema;
}

}  // namespace

Json adapter_card(const api::AdapterSource& adapter, const ModelStatus& status, int64_t created) {
  const std::string& parent = adapter.base_model_name;
  return {{"id", adapter.name},       {"object", "model"},
          {"created", created},       {"owned_by", "octavo"},
          {"root", adapter.path},     {"parent", parent.empty() ? status.model->name : parent},
          {"aliases", Json::array()}, {"status", status_json(status)}};
}

Json model_card(const ModelStatus& status, int64_t created) {
  Json card = {{"id", status.model->name},
               {"object", "model"},
               {"created", created},
               {"owned_by", "octavo"},
               {"root", status.model->source},
               {"parent", nullptr},
               {"aliases", status.model->aliases},
               {"status", status_json(status)}};
  if (status.value == "loaded") card["max_model_len"] = status.max_model_len;
  if (status.value == "loaded" && status.takes_images)
    card["architecture"] = api::image_architecture();
  return card;
}

Json event_json(const ModelEvent& event, const std::string& source) {
  if (event.progress && event.progress->stage == "download") {
    return {
        {"model", event.model},
        {"event", "download_progress"},
        {"data", {{source, {{"done", event.progress->done}, {"total", event.progress->total}}}}}};
  }
  Json data = {{"status", event.status}};
  if (event.progress) data["progress"] = progress_json(*event.progress);
  if (!event.error.empty()) {
    data["failed"] = true;
    data["error"] = event.error;
  }
  return {{"model", event.model}, {"event", "model_status"}, {"data", std::move(data)}};
}

std::vector<Route> model_routes(ModelPool& pool, ModelRouteOptions options) {
  const auto handlers = std::make_shared<const ModelHandlers>(pool, std::move(options));
  const auto route = [&](const char* method, const char* path,
                         Awaitable<void> (ModelHandlers::*handler)(Exchange&) const, Json doc) {
    return Route{.method = method,
                 .path = path,
                 .handler = [handlers, handler](
                                Exchange& exchange) { return ((*handlers).*handler)(exchange); },
                 .doc = std::move(doc)};
  };
  const Json done = object_schema({{"success", "boolean"}});
  Json one = api::operation("Get one model with its status", card_schema());
  one["parameters"] = Json::array({{{"name", "model"},
                                    {"in", "path"},
                                    {"required", true},
                                    {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  return {
      route("GET", "/v1/models", &ModelHandlers::list,
            api::operation("List all models with their status", list_schema())),
      route("GET", "/v1/models/{model}", &ModelHandlers::one, std::move(one)),
      route("GET", "/models", &ModelHandlers::list,
            api::operation("The same as /v1/models", list_schema())),
      route("GET", "/models/sse", &ModelHandlers::events, nullptr),
      route("POST", "/models/load", &ModelHandlers::load,
            api::json_operation("Start to load a model", model_schema(), done)),
      route(
          "POST", "/models/unload", &ModelHandlers::unload,
          api::json_operation("Unload a model once its requests have ended", model_schema(), done)),
      route("GET", "/octavo/ps", &ModelHandlers::ps,
            api::operation("Loaded models and their memory",
                           object_schema({{"models", "array"},
                                          {"used_bytes", "integer"},
                                          {"budget_bytes", "integer"}}))),
  };
}

}  // namespace octavo::front
