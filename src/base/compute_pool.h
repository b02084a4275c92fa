// compute_pool.h - the threads that run the kernels' loops. One pool per process; loops inside
// kernels are the only parallelism on the CPU.
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
  // `threads` includes the caller of parallel_for; 1 means no helpers. If `pinned`, helper i runs
  // only on the i-th core that this process may use; the caller is not pinned.
  explicit ComputePool(int threads, bool pinned = false);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Runs body(begin, end) over [0, count) in pieces of at most `grain`, which threads claim in
  // order; returns when all are done. The result of a piece must not depend on its thread. Rethrows
  // the first exception that a piece throws, after the other pieces have stopped. Concurrent calls
  // run one after another; `body` must not call parallel_for.
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end)>& body);

  // When the last parallel_for ended; the clock's epoch if there was none.
  std::chrono::steady_clock::time_point last_done() const { return last_done_; }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Limits later jobs to `threads` threads, for tests and benchmarks. Must not be called while a
  // job runs.
  void limit_threads(int threads) { limit_ = threads; }

 private:
  struct Job;
  void work(int index);
  bool wait_for_job(uint64_t seen);
  void wake_helpers();
  static void run_pieces(Job& job);

  std::vector<std::thread> workers_;
  std::mutex turn_;  // held by the caller whose job runs
  std::atomic<Job*> job_{nullptr};
  std::atomic<uint64_t> generation_{0};  // of job_
  std::atomic<int> active_{0};           // helpers that may still use the job
  std::atomic<int> limit_{1 << 20};
  std::atomic<bool> stopping_{false};
  std::atomic<std::chrono::steady_clock::time_point> last_done_{};

  // Idle helpers sleep here.
  std::mutex park_mutex_;
  std::condition_variable park_;
  std::atomic<int> parked_{0};
};

// Options of the process's pool, read when it is first used.
struct ComputeOptions {
  int threads = 0;      // --threads; 0: OCTAVO_THREADS, or usable_cores()
  bool pinned = false;  // --pin-threads
};
void set_compute_options(const ComputeOptions& options);

// Returns the process's pool.
ComputePool& compute_pool();

// Returns the number of cores that this process may use: the minimum of the machine's cores, the
// affinity mask and the cgroup's quota.
int usable_cores();

}  // namespace octavo
