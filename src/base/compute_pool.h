// compute_pool.h - the threads that kernels split their loops over. One per process; the loop
// inside a kernel is the only parallelism on the CPU.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

class ComputePool {
 public:
  // `threads` counts the caller of parallel_for as well; 1 means no helpers. Pinned, helper i runs
  // on the i-th core this process may use only; the caller stays free.
  explicit ComputePool(int threads, bool pinned = false);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Runs body(begin, end) over [0, count) in pieces of at most `grain`, which idle threads claim
  // one after the other; returns when all are done. Which thread runs a piece must not change its
  // result. The first exception a piece throws is rethrown here after the others have stopped.
  // Calls from several threads take turns; a call from inside a body is not allowed.
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end)>& body);

  // When a parallel_for last ended; the clock's beginning when none has.
  std::chrono::steady_clock::time_point last_done() const { return last_done_; }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Uses at most `threads` of them from now on: tests and the bench compare counts. Not while a job
  // runs.
  void limit_threads(int threads) { limit_ = threads; }

 private:
  struct Job;
  void work(int index);
  bool wait_for_job(uint64_t seen);
  void wake_helpers();
  static void run_pieces(Job& job);

  std::vector<std::thread> workers_;
  std::mutex turn_;  // held by the one caller whose job runs
  std::atomic<Job*> job_{nullptr};
  std::atomic<uint64_t> generation_{0};  // of job_
  std::atomic<int> active_{0};           // helpers that may hold a pointer to the job
  std::atomic<int> limit_{1 << 20};
  std::atomic<bool> stopping_{false};
  std::atomic<std::chrono::steady_clock::time_point> last_done_{};

  // Helpers that found nothing to do for a while sleep here.
  std::mutex park_mutex_;
  std::condition_variable park_;
  std::atomic<int> parked_{0};
};

// How the process's pool is made; read by its first use.
struct ComputeOptions {
  int threads = 0;      // --threads; 0: OCTAVO_THREADS, or as many as this process may run on
  bool pinned = false;  // --pin-threads
};
void set_compute_options(const ComputeOptions& options);

// The process's pool.
ComputePool& compute_pool();

// Cores this process may use: the smallest of the machine's, the affinity mask's and the cgroup's
// quota.
int usable_cores();

}  // namespace octavo
