// router.h - finds the route of a request and turns exceptions into error responses.
#pragma once

#include <optional>
#include <vector>

#include "server/http/allowed_hosts.h"
#include "server/http/route.h"
#include "server/http_context.h"

namespace octavo::server {

class Router {
 public:
  Router(std::vector<Route> routes, const ServerOptions& options);

  // Whether requests need an API key, except those of Route::needs_key.
  bool needs_key() const { return needs_key_; }
  // The name for logs and metrics: a route's path, or "other".
  std::string_view route_of(const HttpRequest& request) const;
  // Nothing, or the refusal of a Host that is not allowed. Comes before everything else.
  std::optional<HttpResponse> host_refusal(HttpContext& context, const HttpRequest& request) const;
  // The request must have its key, if it has one. Nothing, or the refusal to send before a body is read: no such route, no key, or a body on a
  // route that needs no key.
  std::optional<HttpResponse> refusal(HttpContext& context, const HttpRequest& request) const;
  // The request must not be refused.
  bool streams_body(const HttpRequest& request) const { return find(request).route->streams_body; }
  // Runs the route's handler. Throws only ClientGone.
  Awaitable<void> dispatch(HttpContext& context, Exchange& exchange) const;

 private:
  struct Match {
    const Route* route = nullptr;
    std::string allowed = {};  // methods of the path, if no route matches
  };
  Match find(const HttpRequest& request) const;

  std::vector<Route> routes_;
  bool needs_key_;
  std::optional<AllowedHosts> hosts_;  // nothing: a key is needed, which no rebound page has
};

}  // namespace octavo::server
