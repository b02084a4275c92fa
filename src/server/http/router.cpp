#include "server/http/router.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "api/api_error.h"
#include "base/log.h"
#include "server/http/error_response.h"

namespace octavo::server {
namespace {

bool matches(const Endpoint& endpoint, std::string_view path) {
  const size_t brace = endpoint.path.find('{');
  if (brace == std::string::npos) return endpoint.path == path;
  const std::string_view prefix = std::string_view(endpoint.path).substr(0, brace);
  const std::string_view suffix =
      std::string_view(endpoint.path).substr(endpoint.path.find('}') + 1);
  return path.size() > prefix.size() + suffix.size() && path.starts_with(prefix) &&
         path.ends_with(suffix);
}

HttpResponse response_to(const RequestError& error, const ServerContext& context) {
  HttpResponse response = error_response(error);
  if (error.status() == 429 || error.status() == 503) {
    const auto wait = context.backlog.retry_after(context.open_requests());
    response.headers.emplace_back("Retry-After", std::to_string(wait.count()));
  }
  return response;
}

}  // namespace

Router::Router(std::vector<Endpoint> endpoints, const ServerOptions& options)
    : endpoints_(std::move(endpoints)), keys_(options.api_keys) {
  if (options.api_keys.empty()) hosts_.emplace(options.host, options.allowed_hosts);
}

Router::Match Router::find(const HttpRequest& request) const {
  Match match;
  // HEAD is served by the GET endpoint.
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Endpoint& endpoint : endpoints_) {
    if (!matches(endpoint, request.path)) continue;
    if (endpoint.method == method) return {.endpoint = &endpoint};
    match.allowed += (match.allowed.empty() ? "" : ", ") + endpoint.method;
  }
  return match;
}

std::string_view Router::route_of(const HttpRequest& request) const {
  const Match match = find(request);
  return match.endpoint != nullptr ? std::string_view(match.endpoint->path) : "other";
}

std::optional<HttpResponse> Router::host_refusal(ServerContext& context,
                                                 const HttpRequest& request) const {
  if (!hosts_ || hosts_->allow(request.header("Host"))) return std::nullopt;
  context.metrics.refusals(Refusal::kHost).Increment();
  return error_response(
      403, fmt::format("Host {} is not allowed; start the server with --allowed-hosts NAME",
                       request.header("Host")));
}

std::optional<HttpResponse> Router::refusal(ServerContext& context,
                                            const HttpRequest& request) const {
  const Match match = find(request);
  // Without a key, do not reveal which routes exist.
  const bool open = match.endpoint != nullptr && !match.endpoint->needs_key;
  if (!open && !keys_.allow(request)) {
    context.metrics.refusals(Refusal::kKey).Increment();
    return error_response(401,
                          "missing or invalid API key; send the header Authorization: Bearer KEY");
  }
  // Clients without a key must not fill the memory for bodies.
  if (open && request.has_body()) {
    context.metrics.refusals(Refusal::kBadRequest).Increment();
    return error_response(413, "this path takes no body");
  }
  if (match.endpoint != nullptr) return std::nullopt;
  if (match.allowed.empty())
    return error_response(404, "unknown path; see /openapi.json for all routes");
  HttpResponse response =
      error_response(405, "method not allowed; this path accepts " + match.allowed);
  response.headers.emplace_back("Allow", match.allowed);
  return response;
}

Awaitable<void> Router::dispatch(ServerContext& context, Exchange& exchange) const {
  HttpResponse failure;
  try {
    co_await find(exchange.request()).endpoint->handler(context, exchange);
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
