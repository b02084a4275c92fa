// endpoint.h - a route of the server of a model: its handler, which needs a context, and its OpenAPI
// description.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/fields/json_text.h"
#include "api/fields/operation.h"
#include "server/http/exchange.h"
#include "server/http/route.h"

namespace octavo::server {

class ServerContext;

using Handler = std::function<Awaitable<void>(ServerContext&, Exchange&)>;

struct Endpoint {
  std::string method;
  std::string path;       // a part in braces matches any text: "/v1/models/{model}"
  bool needs_key = true;  // false only if it reveals nothing about requests; then it takes no body
  Handler handler = nullptr;
  bool streams_body = false;  // the handler reads the body; the connection ends with the response
  api::Json doc = nullptr;    // OpenAPI operation; null: not documented (the playground)
};

// An endpoint whose response needs no waiting.
Endpoint simple_endpoint(std::string method, std::string path,
                         std::function<HttpResponse(ServerContext&, const HttpRequest&)> answer,
                         api::Json doc);

// The endpoints as routes. `context` must outlive them.
std::vector<Route> routes_of(std::vector<Endpoint> endpoints, ServerContext& context);

// Throws RequestError(415) unless Content-Type is JSON. Web pages of other origins cannot send JSON
// without a CORS preflight, so they cannot use a visitor's server.
void require_json(const HttpRequest& request);

HttpResponse json_response(const api::Json& json);

}  // namespace octavo::server
