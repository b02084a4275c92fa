// engine_loop.h - the step loop and its door: requests come in from any thread, updates go out. No
// MLX.
//
// One step ahead: step i+1 is queued before step i's tokens are read. A step that fails ends no
// neighbour: see Scheduler::fail.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "scheduler/engine_client.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_runner.h"

namespace octavo {

struct LoopOptions {
  // Beyond either: 429.
  int max_open_requests = 4096;
  int64_t max_open_tokens = 4 << 20;  // of prompts; one request alone may have more
};

class EngineLoop : public EngineClient {
 public:
  // All three must outlive the loop, and are touched only by the thread in run() while it runs.
  EngineLoop(LoopOptions options, PrefixCache& prefixes, Scheduler& scheduler, StepRunner& runner);

  // Runs steps until stop(). The calling thread is the engine thread.
  void run();

  // Any thread, from here on.
  RequestId submit(Request request, UpdateSink sink) override;
  void abort(RequestId id, std::optional<int> only_choice = std::nullopt) override;
  void reset_prefix_cache() override;
  void close() override;
  bool wait_until_idle(std::chrono::milliseconds timeout) override;
  // Something came from the disk.
  void wake();
  // Ends every request and lets run() return.
  void stop();
  EngineStats stats() const override;
  std::chrono::steady_clock::time_point heartbeat() const override;

 private:
  struct Submit {
    RequestId id;
    Request request;
    UpdateSink sink;
  };
  struct Abort {
    RequestId id;
    std::optional<int> only_choice;
  };
  struct ResetPrefixes {};
  using Command = std::variant<Submit, Abort, ResetPrefixes>;
  struct Open {
    UpdateSink sink;
    int choices;
    int64_t tokens;
  };

  std::vector<Command> take_commands();
  void carry_out(Command command);
  void step();
  void start(const Batch& batch);
  void finish_oldest();
  void recover(const char* reason);
  void deliver(std::vector<Update> updates);
  void publish_stats();

  LoopOptions options_;
  RequestLimits limits_;
  PrefixCache& prefixes_;
  Scheduler& scheduler_;
  StepRunner& runner_;
  std::unordered_map<RequestId, Open> open_;  // engine thread
  LoopTimes times_;                           // engine thread
  BucketCounts step_rows_{kStepRowBounds};    // engine thread
  BucketCounts step_seconds_{kStepSecondsBounds};
  std::chrono::steady_clock::time_point step_began_ = {};  // the oldest one in flight
  // The newest result, while there was always something to run since.
  std::optional<std::chrono::steady_clock::time_point> result_came_ = {};
  std::deque<int> drawing_rows_;  // of the steps in flight; 0: not every row of it draws

  mutable std::mutex mutex_;  // all below
  std::condition_variable work_;
  std::condition_variable idle_;
  std::vector<Command> inbox_;
  RequestId next_id_ = 1;
  int open_requests_ = 0;
  int64_t open_tokens_ = 0;
  bool closed_ = false;
  bool stopping_ = false;
  bool woken_ = false;
  EngineStats stats_;
  std::chrono::steady_clock::time_point heartbeat_ = {};
  bool busy_ = false;
};

}  // namespace octavo
