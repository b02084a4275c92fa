// engine_loop.h - the step loop: takes requests from any thread and sends updates. No MLX.
//
// Runs one step ahead: step i+1 is queued before the tokens of step i are read. With several
// pipeline stages, it keeps one step per stage and one more in flight. A failed step does not end
// the other requests in it: see Scheduler::fail.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "scheduler/engine_client.h"
#include "scheduler/scheduler.h"
#include "scheduler/step_runner.h"
#include "scheduler/step_timer.h"

namespace octavo {

struct LoopOptions {
  // Requests beyond either limit get 429.
  int max_open_requests = 4096;
  int64_t max_open_tokens = 4 << 20;  // prompt tokens; a single request may have more
};

class EngineLoop : public EngineClient {
 public:
  // All three must outlive the loop and must not be used by other threads while run() runs.
  EngineLoop(LoopOptions options, PrefixCache& prefixes, Scheduler& scheduler, StepRunner& runner);

  // Runs steps until stop(). The calling thread is the engine thread.
  void run();

  // The functions below may be called from any thread.
  RequestId submit(Request request, UpdateSink sink) override;
  void abort(RequestId id, std::optional<int> only_choice = std::nullopt) override;
  void reset_prefix_cache() override;
  void close() override;
  bool wait_until_idle(std::chrono::milliseconds timeout) override;
  // Pages have been read from disk.
  void wake();
  // Ends every request and makes run() return.
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
  std::optional<Batch> plan();
  // False if `work` threw and the loop has recovered.
  template <typename Work>
  bool succeeds(const Work& work);
  void step();
  // In place of step() if there are several pipeline stages.
  void fill_stages();
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
  StepTimer timer_;  // of the steps in flight

  mutable std::mutex mutex_;  // guards all below
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
