// server_context.h - state shared by the endpoints of a server. I/O thread only, except for the
// text workers.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include "api/openai/response_store.h"
#include "api/served_model.h"
#include "server/admission.h"
#include "server/http/exchange.h"
#include "server/http_context.h"
#include "server/metrics/metrics.h"
#include "server/request_key.h"
#include "server/request_timeout.h"
#include "server/text_task.h"
#include "server/text_workers.h"

namespace octavo::server {

class OutputStream;

class ServerContext : public HttpContext {
 public:
  ServerContext(boost::asio::io_context& io, const api::ServedModel& model,
                const ServerOptions& options);
  ~ServerContext() override;

  const api::ServedModel& model;
  ServerMetrics metrics;
  Backlog backlog;
  api::ResponseStore responses;
  std::set<OutputStream*> answering;
  TextWorkers text_workers;  // after what its jobs refer to

  HttpMetrics& http_metrics() override { return metrics; }
  std::chrono::seconds retry_after() const override { return backlog.retry_after(open_requests()); }
  size_t cut_off_requests() override;

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

  // Runs `work` on a text worker, so that long work does not block the I/O thread. Waits until it
  // ends.
  template <typename Work>
  Awaitable<std::invoke_result_t<Work>> on_text_worker(Work work);
  // Runs `work(preparation)` on a text worker. Stops waiting when the client leaves, at the time
  // limit, or at shutdown, and throws ClientGone or RequestError (503, or 504 at the deadline of the
  // request); the work may then go on for a
  // while, so it must own all it uses, except the model.
  template <typename Work>
  Awaitable<std::invoke_result_t<Work&, const api::Preparation&>> prepare(Exchange& exchange,
                                                                          Work work);

 private:
  friend class Place;
  Allowance places_;
  Allowance sequences_;  // besides the first of each request
  uint64_t calls_ = 0;
};

// Occupies one of max_open_requests, and of max_requests_per_key, for its lifetime.
class Place {
 public:
  // Throws RequestError: 429 or 503.
  Place(ServerContext& context, const HttpRequest& request);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  ServerContext& context_;
  KeyLease key_lease_;
  Allowance::Lease lease_;
};

template <typename Work>
Awaitable<std::invoke_result_t<Work>> ServerContext::on_text_worker(Work work) {
  const auto whole = [inner = std::move(work)](const api::Preparation&) { return inner(); };
  auto task = std::make_shared<TextTask<std::decay_t<decltype(whole)>>>(whole);
  const TaskLimits none;
  co_return co_await run_task(text_workers, std::move(task), none);
}

template <typename Work>
Awaitable<std::invoke_result_t<Work&, const api::Preparation&>> ServerContext::prepare(
    Exchange& exchange, Work work) {
  auto task = std::make_shared<TextTask<Work>>(std::move(work));
  const TaskLimits limits{
      .exchange = &exchange,
      .deadline = std::min(std::chrono::steady_clock::now() + options.preparation_timeout,
                           exchange.request().deadline)};
  try {
    co_return co_await run_task(text_workers, task, limits);
  } catch (const RequestError&) {
    if (task->stop_reason() != nullptr) check_deadline(*this, exchange);
    if (task->stop_reason() != nullptr) metrics.refusals(Refusal::kPreparation).Increment();
    throw;
  }
}

}  // namespace octavo::server
