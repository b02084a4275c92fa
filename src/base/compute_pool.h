// compute_pool.h - the threads that kernels split their loops over. One per process; the loop
// inside a kernel is the only parallelism on the CPU.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

class ComputePool {
 public:
  // `threads` counts the caller of parallel_for as well; 1 means no helpers.
  explicit ComputePool(int threads);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Runs body(begin, end) over [0, count) in pieces of at most `grain`, which idle threads claim
  // one after the other; returns when all are done. Which thread runs a piece must not change its
  // result. The first exception a piece throws is rethrown here after the others have stopped.
  // Calls from several threads take turns; a call from inside a body is not allowed.
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end)>& body);

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

 private:
  struct Job;
  void work();
  static void run_pieces(Job& job);

  std::vector<std::thread> workers_;
  std::mutex turn_;   // held by the one caller whose job runs
  std::mutex mutex_;  // guards the fields below
  std::condition_variable wake_;
  std::condition_variable done_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int busy_ = 0;  // workers that have joined the current job and not left it
  bool stopping_ = false;
};

// The process's pool: OCTAVO_THREADS threads, or as many as this process may run on.
ComputePool& compute_pool();

// Cores this process may use: the smallest of the machine's, the affinity mask's and the cgroup's
// quota.
int usable_cores();

}  // namespace octavo
