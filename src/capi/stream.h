// stream.h - the output of one request as a queue of events.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/output_events.h"
#include "base/error.h"
#include "capi/request_job.h"

namespace octavo::capi {

// All streams of an engine share one lock, so that a caller can wait for several.
struct Waiting {
  std::mutex mutex;
  std::condition_variable came;

  // Waits until `done` holds, without a limit if `timeout_ms` is negative. False if the time passed
  // first.
  template <typename Done>
  bool wait(std::unique_lock<std::mutex>& lock, int64_t timeout_ms, const Done& done) {
    constexpr int64_t kMostMs = 1'000'000'000'000;  // 31 years; clocks count nanoseconds in int64_t
    if (timeout_ms >= 0 && timeout_ms <= kMostMs)
      return came.wait_for(lock, std::chrono::milliseconds(timeout_ms), done);
    came.wait(lock, done);
    return true;
  }
};

class Stream {
 public:
  // Queues the begin event.
  Stream(std::shared_ptr<Waiting> waiting, RequestJob job, const api::ServedModel& model);

  const api::GenerationJob& job() const { return job_.generation(); }

  struct Taken {
    bool end_choice = false;  // abort this choice in the engine
    bool ended = false;       // the last event is queued
    bool failed = false;      // ended by an error; other choices may still run
  };
  // Text thread: processes an update of the engine.
  Taken take(size_t prompt, Update update) noexcept;

  // Any thread. nullopt: timeout.
  struct Next {
    std::optional<std::string> event = {};     // none: the stream has ended
    std::optional<RequestError> failure = {};  // ended by an error; returned once
  };
  std::optional<Next> next(int64_t timeout_ms);
  // With the lock held: whether next() would not block.
  bool ready() const { return !events_.empty() || ended_; }
  Waiting& waiting() const { return *waiting_; }
  // Discards queued and later events.
  void forget();

  // Guarded by the session.
  std::vector<RequestId> requests;  // one per prompt

 private:
  bool read(size_t prompt, Update update);
  void put(std::vector<std::string> events, bool last);
  std::string answer_event(const std::vector<api::OutputEvent>& answers);
  void fail(const RequestError& error);

  const std::shared_ptr<Waiting> waiting_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  RequestJob job_;
  // Text thread.
  api::OutputEvents answers_;
  std::vector<api::OutputEvent> whole_;  // if not streamed
  std::vector<bool> called_;             // choices that called a tool
  bool failed_ = false;
  // Under the lock.
  std::deque<std::string> events_;
  std::optional<RequestError> failure_;
  bool ended_ = false;
  bool forgotten_ = false;
};

}  // namespace octavo::capi
