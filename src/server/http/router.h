// router.h - finds the endpoint of a request and turns exceptions into error responses.
#pragma once

#include <optional>
#include <vector>

#include "server/api_keys.h"
#include "server/http/allowed_hosts.h"
#include "server/http/endpoint.h"
#include "server/server_context.h"

namespace octavo::server {

class Router {
 public:
  Router(std::vector<Endpoint> endpoints, const ServerOptions& options);

  // The route for logs and metrics: an endpoint's path, or "other".
  std::string_view route_of(const HttpRequest& request) const;
  // Nothing, or the refusal of a Host that is not allowed. Comes before everything else.
  std::optional<HttpResponse> host_refusal(ServerContext& context,
                                           const HttpRequest& request) const;
  // Nothing, or the refusal to send before a body is read: no such route, no key, or a body on a
  // route that needs no key.
  std::optional<HttpResponse> refusal(ServerContext& context, const HttpRequest& request) const;
  // The request must not be refused.
  bool streams_body(const HttpRequest& request) const {
    return find(request).endpoint->streams_body;
  }
  // Runs the endpoint. Throws only ClientGone.
  Awaitable<void> dispatch(ServerContext& context, Exchange& exchange) const;

 private:
  struct Match {
    const Endpoint* endpoint = nullptr;
    std::string allowed = {};  // methods of the path, if no endpoint matches
  };
  Match find(const HttpRequest& request) const;

  std::vector<Endpoint> endpoints_;
  ApiKeys keys_;
  std::optional<AllowedHosts> hosts_;  // nothing: a key is needed, which no rebound page has
};

}  // namespace octavo::server
