// endpoint.h - one route of the server: what it answers to, and what the OpenAPI document says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/fields/json_text.h"
#include "api/fields/operation.h"
#include "server/http/exchange.h"

namespace octavo::server {

class ServerContext;

using Handler = std::function<Awaitable<void>(ServerContext&, Exchange&)>;

struct Endpoint {
  std::string method;
  std::string path;       // a last part in braces takes the rest of the path: "/v1/models/{model}"
  bool needs_key = true;  // the few that do not tell nothing of anybody's requests
  Handler handler = nullptr;
  api::Json doc = nullptr;  // OpenAPI's operation; null: not in the document (pages for people)
};

// An endpoint whose answer is there at once.
Endpoint simple_endpoint(std::string method, std::string path,
                         std::function<HttpResponse(ServerContext&, const HttpRequest&)> answer,
                         api::Json doc);

// Throws RequestError(415) unless the body says it is JSON. A web page of another origin cannot
// send such a request unasked, so it cannot use the server of whoever visits it.
void require_json(const HttpRequest& request);

HttpResponse json_response(const api::Json& json);

}  // namespace octavo::server
