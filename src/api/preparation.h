// preparation.h - how the preparation of a request (JSON, template, tokenizing, grammar) is stopped.
#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>

#include "base/error.h"

namespace octavo::api {

// Whether work waits for other requests or for a server, and so takes no processor time. The work's
// thread sets it, any thread reads it.
class WaitRecord {
 public:
  using Clock = std::chrono::steady_clock;

  void begin() { waits_ = true; }
  void end() {
    last_end_ = Clock::now().time_since_epoch();
    waits_ = false;
  }
  bool waits() const { return waits_; }
  // When it last waited; the epoch: never.
  Clock::time_point last_end() const { return Clock::time_point(last_end_.load()); }

 private:
  std::atomic<bool> waits_ = false;
  std::atomic<Clock::duration> last_end_{Clock::duration::zero()};
};

// Long work looks at `stop` at least every 100 ms and ends early, with any exception, once a stop is
// requested: the client has left, the time limit has passed, or the server shuts down.
struct Preparation {
  std::stop_token stop = {};      // by default, never stopped
  WaitRecord* waiting = nullptr;  // null: unused

  // Between two parts of the work. The caller that requested the stop knows the reason.
  void check() const {
    if (stop.stop_requested()) throw RequestError(503, "", "the request was stopped");
  }
};

// The work waits for the lifetime of this.
class Waiting {
 public:
  explicit Waiting(const Preparation& preparation) : record_(preparation.waiting) {
    if (record_ != nullptr) record_->begin();
  }
  ~Waiting() {
    if (record_ != nullptr) record_->end();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  WaitRecord* const record_;
};

}  // namespace octavo::api
