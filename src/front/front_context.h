// front_context.h - state shared by the routes of a front process. I/O thread only. No MLX.
#pragma once

#include <functional>
#include <set>

#include "front/response_models.h"
#include "front/upstream_connections.h"
#include "front/upstreams.h"
#include "server/http_context.h"
#include "server/request_key.h"

namespace octavo::front {

class Relay;

class FrontMetrics : public server::HttpMetrics {
 public:
  FrontMetrics();

  prometheus::Counter& resumed_streams;  // continued on another child
  prometheus::Counter& resent_requests;  // sent to another child from the beginning
};

class FrontContext : public server::HttpContext {
 public:
  FrontContext(boost::asio::io_context& io_context, const server::ServerOptions& server_options,
               Upstreams& children);

  Upstreams& upstreams;
  FrontMetrics metrics;
  UpstreamConnections connections;
  ResponseModels responses;
  std::set<Relay*> relays;
  // Ends the children, after the last request of a drain.
  std::function<Awaitable<void>()> end_children = nullptr;

  server::HttpMetrics& http_metrics() override { return metrics; }
  std::chrono::seconds retry_after() const override {
    return backlog_.retry_after(open_requests());
  }
  size_t cut_off_requests() override;
  Awaitable<void> requests_ended() override;

  int64_t open_requests() const { return places_.lent(); }
  bool queue_full() const { return places_.lent() >= places_.most(); }

  // Counts a request as open during its lifetime. Throws RequestError: 429 or 503.
  class Place {
   public:
    Place(FrontContext& context, const server::HttpRequest& request);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    FrontContext& context_;
    server::KeyLease key_lease_;
    server::Allowance::Lease lease_;
  };

 private:
  server::Allowance places_;
  server::Backlog backlog_;
};

}  // namespace octavo::front
