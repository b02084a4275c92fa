// worker_loop.h - the steps of a rank other than 0: takes commands, computes, sends results.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cache/page_memory.h"
#include "distributed/worker_channel.h"
#include "engine/cluster/worker_steps.h"

namespace octavo {

// A step that can be queued at once is queued before the step in flight is read.
class WorkerLoop {
 public:
  // All must outlive the loop.
  WorkerLoop(WorkerChannel& channel, TensorLinks& links, WorkerSteps& steps, PageMemory& pages);
  // Stops the links if rank 0 has not ended the cluster.
  ~WorkerLoop();
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  // Runs until rank 0 ends the cluster. The calling thread is the engine thread. Throws ClusterError
  // or LinkError if another rank is gone.
  void run();

 private:
  // What can be done next.
  enum class Work : uint8_t { kCommand, kStart, kFinish };

  void run_commands();
  void report(const std::string& error);
  void read_commands();
  void notify();
  // Waits until there is something to do.
  Work wait();
  // False: rank 0 has ended the cluster.
  bool carry_out(WorkerChannel::Command& command);
  void start_oldest();
  void finish_oldest();
  void drop();

  WorkerChannel& channel_;
  TensorLinks& links_;
  WorkerSteps& steps_;
  PageMemory& pages_;
  std::deque<StepMessage> waiting_;  // for their input, oldest first

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<WorkerChannel::Command> commands_;
  int drops_ = 0;  // among the commands
  std::optional<std::string> failure_;
  bool ended_ = false;  // rank 0 has ended the cluster

  std::thread reader_;
};

}  // namespace octavo
