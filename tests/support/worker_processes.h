// worker_processes.h - the other ranks of a cluster, as processes of the same test program.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/system_memory.h"
#include "distributed/cluster.h"
#include "distributed/worker_channel.h"
#include "engine/run_worker.h"
#include "kernels/arithmetic.h"

namespace octavo {

inline ClusterSecret test_secret() { return ClusterSecret("0123456789abcdef0123456789abcdef"); }

inline WorkerHello test_hello(int rank) {
  return {.rank = rank,
          .version = "test",
          .arithmetic = kArithmeticVersion,
          .isa = "any",
          .memory_bytes = usable_memory_bytes() / 2};
}

// What a worker's process does.
inline int work_as_rank(const std::string& model, int port, int rank, const EngineOptions& engine) {
  auto channel = WorkerChannel::connect({.host = "127.0.0.1",
                                         .port = static_cast<uint16_t>(port),
                                         .secret = test_secret(),
                                         .self = test_hello(rank)});
  const Checkpoint checkpoint = Checkpoint::open(model);
  run_worker(checkpoint, engine, *channel, nullptr);
  return 0;
}

// Ranks 1 and above of a cluster of `ranks`.
class WorkerProcesses {
 public:
  // Runs this program with `words`, "--connect PORT" and "--rank RANK".
  WorkerProcesses(const std::vector<std::string>& words, int ranks, uint16_t port) {
    for (int rank = 1; rank < ranks; ++rank) {
      std::vector<std::string> all = {"worker"};
      all.insert(all.end(), words.begin(), words.end());
      all.insert(all.end(), {"--connect", std::to_string(port), "--rank", std::to_string(rank)});
      std::vector<char*> pointers;
      for (std::string& word : all) pointers.push_back(word.data());
      pointers.push_back(nullptr);
      const pid_t child = ::fork();
      if (child == 0) {
        ::execv("/proc/self/exe", pointers.data());
        ::_exit(127);
      }
      children_.push_back(child);
    }
  }
  ~WorkerProcesses() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    join();
  }
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  void kill(int rank) { ::kill(children_[static_cast<size_t>(rank - 1)], SIGKILL); }
  // Waits for all. Returns the number that did not exit with status 0.
  int join() {
    int failed = 0;
    for (const pid_t child : std::exchange(children_, {})) {
      int status = 0;
      ::waitpid(child, &status, 0);
      failed += status != 0;
    }
    return failed;
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace octavo
