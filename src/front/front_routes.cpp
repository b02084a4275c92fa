#include "front/front_routes.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "front/merged_metrics.h"
#include "front/relay.h"
#include "server/endpoints/endpoints.h"
#include "server/http/error_response.h"
#include "server/http/openapi.h"
#include "server/persistent_state.h"
#include "state/response_model_table.h"

namespace octavo::front {
namespace {

using api::Json;
using server::Endpoint;
using server::Exchange;
using server::HttpRequest;
using server::HttpResponse;
using server::Route;

// POST, with the model in the JSON body.
constexpr std::array<std::string_view, 20> kByModel = {"/v1/chat/completions",
                                                       "/v1/completions",
                                                       "/v1/messages",
                                                       "/v1/messages/count_tokens",
                                                       "/v1/responses",
                                                       "/v1/responses/input_tokens",
                                                       "/v1/embeddings",
                                                       "/v1/rerank",
                                                       "/rerank",
                                                       "/v2/rerank",
                                                       "/v1/score",
                                                       "/score",
                                                       "/tokenize",
                                                       "/detokenize",
                                                       "/api/chat",
                                                       "/api/generate",
                                                       "/api/embed",
                                                       "/api/embeddings",
                                                       "/api/show",
                                                       "/api/pull"};
constexpr std::string_view kStored = "/v1/responses/";
constexpr std::chrono::seconds kScrapeTime{3};  // for all children together

Json doc_of(const std::vector<Endpoint>& endpoints, std::string_view method,
            std::string_view path) {
  for (const Endpoint& endpoint : endpoints)
    if (endpoint.method == method && endpoint.path == path) return endpoint.doc;
  return nullptr;
}

Awaitable<void> relay_by_model(FrontContext& context, Exchange& exchange) {
  Relay relay(context, exchange);
  co_await relay.run_by_body();
}

bool is_loaded(const FrontContext& context, uint64_t generation) {
  for (const LoadedModel& model : context.upstreams.loaded())
    if (model.generation == generation) return true;
  return false;
}

// A response is stored in the memory of the child that made it, and with --state-dir in the state of
// its model, which another child can read.
Awaitable<std::optional<RelayTarget>> place_of_stored(FrontContext& context, std::string owner,
                                                      std::string id) {
  const auto place = context.responses.find(owner, id);
  if (place && is_loaded(context, place->generation))
    co_return RelayTarget{.model = place->model, .options = {.autoload = false}};
  if (!context.state) co_return std::nullopt;
  const auto find = [stored = context.tenants.stored(owner), id](const state::Database& database) {
    return state::ResponseModelTable(database).find(stored, id);
  };
  const std::optional<std::string> model = co_await context.state->run(find);
  if (!model) co_return std::nullopt;
  co_return RelayTarget{.model = *model};
}

Awaitable<void> relay_to_stored(FrontContext& context, Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  std::string id = request.path.substr(kStored.size());
  id.resize(std::min(id.find('/'), id.size()));
  std::optional<RelayTarget> target =
      co_await place_of_stored(context, context.tenants.of(request).owner, id);
  if (!target)
    throw RequestError(404, "",
                       fmt::format("response {} was not stored or has been evicted; send the whole "
                                   "conversation as input",
                                   api::json_string(id.substr(0, 100))));
  Relay relay(context, exchange);
  co_await relay.run_to(std::move(*target));
}

// The child's page, or nothing if it does not answer in time.
Awaitable<std::string> scrape(FrontContext& context, const LoadedModel& model,
                              std::chrono::steady_clock::time_point deadline) {
  using Got = UpstreamConnection::Got;
  const auto connection = context.connections.fresh();
  const bool connected = co_await connection->connect(model.socket);
  if (!connected) co_return std::string();
  const std::string head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  co_await connection->send(head, {});
  std::string text;
  while (true) {
    const Got got = co_await connection->read(deadline);
    if (got == Got::kSilence || got == Got::kBroken) co_return std::string();
    if (got == Got::kBody) text += connection->take_body();
    if (got == Got::kEnd) break;
  }
  co_return connection->head().result_int() == 200 ? std::move(text) : std::string();
}

Awaitable<void> send_metrics(FrontContext& context, Exchange& exchange) {
  const auto deadline = std::chrono::steady_clock::now() + kScrapeTime;
  std::vector<MetricsPage> pages = {{.text = context.metrics.text()}};
  for (const LoadedModel& model : context.upstreams.loaded()) {
    if (!model.ready) continue;
    std::string text = co_await scrape(context, model, deadline);
    pages.push_back({.model = model.name, .text = std::move(text)});
  }
  HttpResponse response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                        .body = merged_metrics(pages)};
  co_await exchange.send(std::move(response));
}

HttpResponse json(const Json& value) { return {.body = api::dump(value)}; }

Route by_model(FrontContext& context, std::string_view path, Json doc) {
  return {.method = "POST",
          .path = std::string(path),
          .handler = [&context](Exchange& exchange) { return relay_by_model(context, exchange); },
          .doc = std::move(doc)};
}

std::vector<Route> probes(const FrontContext& context) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"status", {{"type", "string"}}}}},
                       {"required", {"status"}}};
  const auto alive = [](const HttpRequest&) { return json({{"status", "ok"}}); };
  const auto ready = [&context](const HttpRequest&) {
    if (context.leaving || context.draining)
      return server::error_response(503, "the server is shutting down");
    if (context.queue_full())
      return server::error_response(503, "the limit of open requests is reached");
    return json({{"status", "ok"}});
  };
  const auto healthy = [&context](const HttpRequest&) {
    if (context.leaving) return server::error_response(503, "the server is shutting down");
    return json({{"status", "ok"}});
  };
  std::vector<Route> routes;
  const auto add = [&](const char* method, const char* path, auto answer, const char* about) {
    routes.push_back(server::simple_route(method, path, answer, api::operation(about, schema)));
    routes.back().needs_key = false;
  };
  add("GET", "/livez", alive, "Whether the front process answers");
  add("GET", "/readyz", ready, "Whether the front process accepts requests");
  add("GET", "/health", healthy, "Same as /livez, under vLLM's name; fails during --drain-delay");
  add("GET", "/ping", alive, "Same as /livez, under SageMaker's name");
  add("POST", "/ping", alive, "Same as /livez, under SageMaker's name");
  routes.push_back(server::simple_route(
      "GET", "/api/hello", [](const HttpRequest&) { return json({{"message", "hello"}}); },
      api::operation("Whether a server listens, for Claude Code", {{"type", "object"}})));
  routes.back().needs_key = false;
  for (const char* path : {"/", "/page/{file}"}) {
    routes.push_back(server::simple_route("GET", path, server::page_file, nullptr));
    routes.back().needs_key = false;
  }
  return routes;
}

}  // namespace

std::vector<Route> relayed_routes(FrontContext& context) {
  const std::vector<Endpoint> endpoints = server::all_endpoints();
  std::vector<Route> routes;
  for (const std::string_view path : kByModel)
    routes.push_back(by_model(context, path, doc_of(endpoints, "POST", path)));
  const std::string stored = "/v1/responses/{response_id}";
  for (const char* method : {"GET", "DELETE", "POST"}) {
    routes.push_back(
        {.method = method,
         .path = stored,
         .handler = [&context](Exchange& exchange) { return relay_to_stored(context, exchange); },
         .doc = doc_of(endpoints, method, stored)});
  }
  return routes;
}

std::vector<Route> own_routes(FrontContext& context) {
  const std::vector<Endpoint> endpoints = server::all_endpoints();
  std::vector<Route> routes = probes(context);
  routes.push_back(server::simple_route(
      "GET", "/version",
      [&context](const HttpRequest&) { return json({{"version", context.options.version}}); },
      doc_of(endpoints, "GET", "/version")));
  routes.push_back(server::simple_route(
      "GET", "/load",
      [&context](const HttpRequest&) { return json({{"server_load", context.open_requests()}}); },
      doc_of(endpoints, "GET", "/load")));
  routes.push_back(
      {.method = "GET",
       .path = "/metrics",
       .handler = [&context](Exchange& exchange) { return send_metrics(context, exchange); },
       .doc = doc_of(endpoints, "GET", "/metrics")});
  server::HttpContext& http = context;
  for (auto part :
       {server::file_endpoints(), server::batch_endpoints(), server::ollama_change_endpoints()})
    for (Route& route : server::routes_of(std::move(part), http))
      routes.push_back(std::move(route));
  return routes;
}

std::vector<Route> front_routes(FrontContext& context, std::vector<Route> more) {
  std::vector<Route> routes = std::move(more);
  for (std::vector<Route> part : {relayed_routes(context), own_routes(context)})
    routes.insert(routes.end(), std::make_move_iterator(part.begin()),
                  std::make_move_iterator(part.end()));
  const std::string text = api::dump(server::openapi_document(routes));
  routes.push_back(server::simple_route(
      "GET", "/openapi.json", [text](const HttpRequest&) { return HttpResponse{.body = text}; },
      nullptr));
  return routes;
}

}  // namespace octavo::front
