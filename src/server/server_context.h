// server_context.h - state shared by the endpoints of a server. I/O thread only, except for the
// text workers.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "api/openai/response_store.h"
#include "api/served_model.h"
#include "server/admission.h"
#include "server/http/exchange.h"
#include "server/metrics/metrics.h"
#include "server/server_options.h"
#include "server/tenant.h"

namespace octavo::server {

class OutputStream;

class ServerContext {
 public:
  ServerContext(boost::asio::io_context& io, const api::ServedModel& model,
                const ServerOptions& options);
  ~ServerContext();
  ServerContext(const ServerContext&) = delete;
  ServerContext& operator=(const ServerContext&) = delete;

  boost::asio::io_context& io;
  const api::ServedModel& model;
  const ServerOptions& options;
  ServerMetrics metrics;
  Allowance bodies;  // bytes
  Backlog backlog;
  api::ResponseStore responses;
  const Tenants tenants;
  bool draining = false;
  int busy_exchanges = 0;  // request read, response not fully written
  std::set<OutputStream*> answering;

  int64_t open_requests() const { return places_.lent(); }
  bool queue_full() const { return places_.lent() >= places_.most(); }
  // Counts `count` sequences of a request as open while the lease exists; its first one is covered
  // by its Place, so that requests of many sequences cannot shut out those of one. Throws
  // RequestError: 400 if the limit never allows so many, 429 if it does not now. `param`: the
  // request field that asks for them.
  Allowance::Lease open_sequences(int64_t count, const char* param);
  // A number for the next call, for Request::call.
  uint64_t next_call() { return ++calls_; }
  // Whether the engine has made progress recently.
  bool engine_alive() const;

  // Waits for running work; drops queued work.
  void stop_text_workers();
  // Runs `work` on a text worker, so that long work does not block the I/O thread.
  template <typename Work>
  Awaitable<std::invoke_result_t<Work>> on_text_worker(Work work);

 private:
  friend class Place;
  Allowance places_;
  Allowance sequences_;  // besides the first of each request
  uint64_t calls_ = 0;
  boost::asio::thread_pool text_workers_;
};

// Occupies one of max_open_requests for its lifetime.
class Place {
 public:
  // Throws RequestError: 429 or 503.
  explicit Place(ServerContext& context);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  ServerContext& context_;
  Allowance::Lease lease_;
};

template <typename Work>
Awaitable<std::invoke_result_t<Work>> ServerContext::on_text_worker(Work work) {
  using Result = std::invoke_result_t<Work>;
  // The coroutine's frame owns its argument, but not a lambda's captures.
  const auto run = [](Work inner) -> Awaitable<Result> { co_return inner(); };
  co_return co_await boost::asio::co_spawn(text_workers_, run(std::move(work)),
                                           boost::asio::use_awaitable);
}

}  // namespace octavo::server
