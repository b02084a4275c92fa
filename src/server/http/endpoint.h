// endpoint.h - a route whose handler needs a context of the server, and its OpenAPI description.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/fields/json_text.h"
#include "api/fields/operation.h"
#include "server/http/exchange.h"
#include "server/http/route.h"

namespace octavo::server {

class HttpContext;
class ServerContext;

template <typename Context>
struct EndpointOf {
  std::string method;
  std::string path;       // a part in braces matches any text: "/v1/models/{model}"
  bool needs_key = true;  // false only if it reveals nothing about requests; then it takes no body
  std::function<Awaitable<void>(Context&, Exchange&)> handler = nullptr;
  bool streams_body = false;  // the handler reads the body; the connection ends with the response
  api::Json doc = nullptr;    // OpenAPI operation; null: not documented (the playground)
};

using Endpoint = EndpointOf<ServerContext>;
// Needs no model.
using HttpEndpoint = EndpointOf<HttpContext>;

// An endpoint whose response needs no waiting.
Endpoint simple_endpoint(std::string method, std::string path,
                         std::function<HttpResponse(ServerContext&, const HttpRequest&)> answer,
                         api::Json doc);

// The endpoints as routes. `context` must outlive them.
template <typename Context>
std::vector<Route> routes_of(std::vector<EndpointOf<Context>> endpoints, Context& context) {
  std::vector<Route> routes;
  for (EndpointOf<Context>& endpoint : endpoints) {
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

// Throws RequestError(415) unless Content-Type is JSON. Web pages of other origins cannot send JSON
// without a CORS preflight, so they cannot use a visitor's server.
void require_json(const HttpRequest& request);

HttpResponse json_response(const api::Json& json);

}  // namespace octavo::server
