// http_context.h - state of an HTTP server that does not depend on what it serves. I/O thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>

#include "server/admission.h"
#include "server/http/exchange.h"
#include "server/metrics/http_metrics.h"
#include "server/server_options.h"

namespace octavo::server {

class HttpContext {
 public:
  HttpContext(boost::asio::io_context& io_context, const ServerOptions& server_options)
      : io(io_context), options(server_options), bodies(server_options.max_open_bytes) {}
  virtual ~HttpContext() = default;
  HttpContext(const HttpContext&) = delete;
  HttpContext& operator=(const HttpContext&) = delete;

  boost::asio::io_context& io;
  const ServerOptions& options;
  Allowance bodies;  // bytes
  bool draining = false;
  int busy_exchanges = 0;  // request read, response not fully written

  virtual HttpMetrics& http_metrics() = 0;
  // For the header Retry-After of refused requests.
  virtual std::chrono::seconds retry_after() const = 0;
  virtual void drain_began() {}
  // After the drain timeout: makes the requests that are still open end with an error. Returns how
  // many these are.
  virtual size_t cut_off_requests() = 0;
  // Runs after the last request of a drain, before the server stops.
  virtual Awaitable<void> requests_ended() { co_return; }
};

}  // namespace octavo::server
