#include "server/http/router.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "api/api_error.h"
#include "base/log.h"
#include "server/http/error_response.h"

namespace octavo::server {
namespace {

bool matches(const Route& route, std::string_view path) {
  const size_t brace = route.path.find('{');
  if (brace == std::string::npos) return route.path == path;
  const std::string_view prefix = std::string_view(route.path).substr(0, brace);
  const std::string_view suffix = std::string_view(route.path).substr(route.path.find('}') + 1);
  return path.size() > prefix.size() + suffix.size() && path.starts_with(prefix) &&
         path.ends_with(suffix);
}

HttpResponse response_to(const RequestError& error, const HttpContext& context) {
  HttpResponse response = error_response(error);
  if (error.status() == 429 || error.status() == 503) {
    response.headers.emplace_back("Retry-After", std::to_string(context.retry_after().count()));
  }
  return response;
}

}  // namespace

Router::Router(std::vector<Route> routes, const ServerOptions& options)
    : routes_(std::move(routes)), needs_key_(!options.api_keys.empty()) {
  if (!needs_key_) hosts_.emplace(options.host, options.allowed_hosts);
}

Router::Match Router::find(const HttpRequest& request) const {
  Match match;
  // HEAD is served by the GET route.
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Route& route : routes_) {
    if (!matches(route, request.path)) continue;
    if (route.method == method) return {.route = &route};
    match.allowed += (match.allowed.empty() ? "" : ", ") + route.method;
  }
  return match;
}

std::string_view Router::route_of(const HttpRequest& request) const {
  const Match match = find(request);
  return match.route != nullptr ? std::string_view(match.route->path) : "other";
}

std::optional<HttpResponse> Router::host_refusal(HttpContext& context,
                                                 const HttpRequest& request) const {
  if (!hosts_ || hosts_->allow(request.header("Host"))) return std::nullopt;
  context.http_metrics().refusals(Refusal::kHost).Increment();
  return error_response(
      403, fmt::format("Host {} is not allowed; start the server with --allowed-hosts NAME",
                       request.header("Host")));
}

std::optional<HttpResponse> Router::refusal(HttpContext& context,
                                            const HttpRequest& request) const {
  const Match match = find(request);
  // Without a key, do not reveal which routes exist.
  const bool open = match.route != nullptr && !match.route->needs_key;
  if (!open && needs_key_ && request.key == nullptr) {
    context.http_metrics().refusals(Refusal::kKey).Increment();
    return error_response(401,
                          "missing or invalid API key; send the header Authorization: Bearer KEY");
  }
  // Clients without a key must not fill the memory for bodies.
  if (open && request.has_body()) {
    context.http_metrics().refusals(Refusal::kBadRequest).Increment();
    return error_response(413, "this path takes no body");
  }
  if (match.route != nullptr) return std::nullopt;
  if (match.allowed.empty())
    return error_response(404, "unknown path; see /openapi.json for all routes");
  HttpResponse response =
      error_response(405, "method not allowed; this path accepts " + match.allowed);
  response.headers.emplace_back("Allow", match.allowed);
  return response;
}

Awaitable<void> Router::dispatch(HttpContext& context, Exchange& exchange) const {
  HttpResponse failure;
  try {
    co_await find(exchange.request()).route->handler(exchange);
    co_return;
  } catch (const RequestError& error) {
    failure = response_to(error, context);
  } catch (const std::bad_alloc&) {
    failure = error_response(503, "out of memory for this request; try again later");
  } catch (const std::exception& error) {
    spdlog::error("{} {}: {}", exchange.request().method, exchange.request().path, error.what());
    failure = error_response(500, "internal error; see the server's log");
  }
  if (!exchange.started()) co_await exchange.send(std::move(failure));
}

}  // namespace octavo::server
