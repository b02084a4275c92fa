// http_context.h - state of an HTTP server that does not depend on what it serves. I/O thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

#include "server/admission.h"
#include "server/api_keys.h"
#include "server/http/exchange.h"
#include "server/metrics/http_metrics.h"
#include "server/server_options.h"
#include "server/tenant.h"

namespace octavo::server {

class BatchRunner;
class PersistentState;

class HttpContext {
 public:
  // Throws SetupError if the folder for state cannot be used.
  HttpContext(boost::asio::io_context& io_context, const ServerOptions& server_options);
  virtual ~HttpContext();
  HttpContext(const HttpContext&) = delete;
  HttpContext& operator=(const HttpContext&) = delete;

  boost::asio::io_context& io;
  const ServerOptions& options;
  Allowance bodies;  // bytes
  ApiKeys keys;
  Tenants tenants;
  const std::unique_ptr<PersistentState> state;  // null without --state-dir
  BatchRunner* batches = nullptr;                // with `state`
  bool leaving = false;    // since SIGTERM with --drain-delay: health checks fail
  bool draining = false;   // new requests are refused
  int busy_exchanges = 0;  // request read, response not fully written

  virtual HttpMetrics& http_metrics() = 0;
  // Reads the keys again (ServerOptions::reload_api_keys). If that fails, logs why and keeps them.
  void reload_keys();
  // For the header Retry-After of refused requests.
  virtual std::chrono::seconds retry_after() const = 0;
  void drain_began();
  // After the drain timeout: makes the requests that are still open end with an error. Returns how
  // many these are.
  virtual size_t cut_off_requests() = 0;
  // Runs after the last request of a drain, before the server stops.
  virtual Awaitable<void> requests_ended() { co_return; }
};

}  // namespace octavo::server
