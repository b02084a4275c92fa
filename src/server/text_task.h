// text_task.h - runs a function on a text worker and waits for its result. I/O thread only.
#pragma once

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/preparation.h"
#include "server/http/exchange.h"
#include "server/text_workers.h"

namespace octavo::server {

// A function with everything it needs, and its result.
template <typename Work>
class TextTask : public TextJob {
 public:
  using Result = std::invoke_result_t<Work&, const api::Preparation&>;

  explicit TextTask(Work work) : work_(std::move(work)) {}

  bool done() const { return done_; }
  // Called when the job has ended.
  void on_end(std::function<void()> callback) { on_end_ = std::move(callback); }
  // Once done: the result, or the exception of the work. The exception of a stopped job becomes a
  // RequestError(503) with the reason.
  Result take() {
    if (!error_ && result_) return std::move(*result_);
    if (stop_reason() != nullptr) throw RequestError(503, "", stop_reason());
    std::rethrow_exception(error_);
  }

 protected:
  void run() noexcept override {
    try {
      result_.emplace(work_(api::Preparation{.stop = stop_token(), .waiting = &waiting_}));
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void ended() noexcept override {
    done_ = true;
    if (on_end_) std::exchange(on_end_, nullptr)();
  }

 private:
  Work work_;
  std::optional<Result> result_ = {};
  std::exception_ptr error_ = nullptr;
  bool done_ = false;
  std::function<void()> on_end_ = nullptr;
};

// When the caller stops waiting for a task. The task must then own all it uses.
struct TaskLimits {
  Exchange* exchange = nullptr;  // null: wait until the task ends
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Throws ClientGone, RequestError(503) if the task was stopped, or the exception of the work.
template <typename Work>
Awaitable<typename TextTask<Work>::Result> run_task(TextWorkers& workers,
                                                    std::shared_ptr<TextTask<Work>> task,
                                                    TaskLimits limits) {
  using Clock = std::chrono::steady_clock;
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  // Removes the callbacks, which refer to the timer, on every way out.
  struct Callbacks {
    TextTask<Work>& task;
    Exchange* exchange;
    ~Callbacks() {
      task.on_end(nullptr);
      if (exchange != nullptr) exchange->on_client_gone(nullptr);
    }
  };
  const Callbacks callbacks{*task, limits.exchange};
  task->on_end([&timer] { timer.cancel(); });
  if (limits.exchange != nullptr) limits.exchange->on_client_gone([&timer] { timer.cancel(); });
  workers.submit(task);
  auto look = Clock::now() + workers.long_job();
  while (!task->done()) {
    if (limits.exchange != nullptr) {
      if (limits.exchange->client_gone()) {
        task->stop("the client has left");
        throw ClientGone();
      }
      if (Clock::now() >= limits.deadline)
        task->stop("the request took too long to prepare; shorten it, or try again later");
      if (task->stop_reason() != nullptr) throw RequestError(503, "", task->stop_reason());
    }
    if (Clock::now() >= look) {
      workers.relieve();
      look = Clock::now() + workers.long_job();
    }
    timer.expires_at(std::min(look, limits.deadline));
    boost::system::error_code cancelled;  // the task ended, or the client left
    co_await timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  }
  co_return task->take();
}

}  // namespace octavo::server
