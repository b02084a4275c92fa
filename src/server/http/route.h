// route.h - what a router knows: a path, and the handler of its requests.
#pragma once

#include <functional>
#include <string>

#include "api/fields/json_text.h"
#include "server/http/exchange.h"

namespace octavo::server {

struct Route {
  std::string method;
  std::string path;       // a part in braces matches any text: "/v1/models/{model}"
  bool needs_key = true;  // false only if it reveals nothing about requests; then it takes no body
  std::function<Awaitable<void>(Exchange&)> handler = nullptr;
  bool streams_body = false;  // the handler reads the body; the connection ends with the response
  api::Json doc = nullptr;    // OpenAPI operation; null: not documented (the playground)
};

// A route whose response needs no waiting.
Route simple_route(std::string method, std::string path,
                   std::function<HttpResponse(const HttpRequest&)> answer, api::Json doc);

}  // namespace octavo::server
