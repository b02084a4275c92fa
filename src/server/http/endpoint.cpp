#include "server/http/endpoint.h"

#include <utility>

#include "base/error.h"

namespace octavo::server {

using namespace api;

namespace {

using Answer = std::function<HttpResponse(ServerContext&, const HttpRequest&)>;

Awaitable<void> send_answer(Answer answer, ServerContext& context, Exchange& exchange) {
  HttpResponse response = answer(context, exchange.request());
  co_await exchange.send(std::move(response));
}

Awaitable<void> send_simple(std::function<HttpResponse(const HttpRequest&)> answer,
                            Exchange& exchange) {
  HttpResponse response = answer(exchange.request());
  co_await exchange.send(std::move(response));
}

}  // namespace

Route simple_route(std::string method, std::string path,
                   std::function<HttpResponse(const HttpRequest&)> answer, Json doc) {
  return {.method = std::move(method),
          .path = std::move(path),
          .handler = [answer = std::move(answer)](
                         Exchange& exchange) { return send_simple(answer, exchange); },
          .doc = std::move(doc)};
}

std::vector<Route> routes_of(std::vector<Endpoint> endpoints, ServerContext& context) {
  std::vector<Route> routes;
  for (Endpoint& endpoint : endpoints) {
    routes.push_back({.method = std::move(endpoint.method),
                      .path = std::move(endpoint.path),
                      .needs_key = endpoint.needs_key,
                      .handler = [handler = std::move(endpoint.handler), &context](
                                     Exchange& exchange) { return handler(context, exchange); },
                      .streams_body = endpoint.streams_body,
                      .doc = std::move(endpoint.doc)});
  }
  return routes;
}

Endpoint simple_endpoint(std::string method, std::string path, Answer answer, Json doc) {
  return {.method = std::move(method),
          .path = std::move(path),
          .handler = [answer = std::move(answer)](
                         ServerContext& context,
                         Exchange& exchange) { return send_answer(answer, context, exchange); },
          .doc = std::move(doc)};
}

void require_json(const HttpRequest& request) {
  std::string_view type = request.header("Content-Type");
  type = type.substr(0, type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  if (!equal_ignoring_case(type, "application/json"))
    throw RequestError(415, "", "the header Content-Type must be application/json");
}

HttpResponse json_response(const Json& json) { return {.body = dump(json)}; }

}  // namespace octavo::server
