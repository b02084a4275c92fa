// compute_pool.h - the threads that run the kernels' loops. One pool per process; loops inside
// kernels are the only parallelism on the CPU.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/topology/cpu_list.h"

namespace octavo {

// The first of `count` pieces that thread `thread` of `threads` owns. Shares are contiguous and
// differ by at most one piece.
constexpr int64_t first_of_share(int64_t count, int threads, int thread) {
  return (count * thread + threads - 1) / threads;
}

class ComputePool {
 public:
  using Body = std::function<void(int64_t begin, int64_t end)>;

  // `threads` includes the caller of parallel_for, which is thread 0; 1 means no helpers. Thread i
  // runs only on cpus[i], if there is one; the caller is not bound.
  explicit ComputePool(int threads, std::span<const CpuId> cpus = {});
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Runs body(begin, end) over [0, count) in pieces of at most `grain`; returns when all are done.
  // Each thread runs its own share first (first_of_share), which is the same in every call with
  // these numbers, so that its data stay in its caches and on its NUMA node; then it takes pieces
  // from the shares of others. The result of a piece must not depend on its thread. Rethrows the
  // first exception that a piece throws, after the other pieces have stopped. Concurrent calls run
  // one after another; `body` must not call parallel_for.
  void parallel_for(int64_t count, int64_t grain, const Body& body);

  // The same with pieces of one, where thread t owns [firsts[t], firsts[t + 1]). `firsts` starts
  // with 0 and has at most threads() + 1 elements; the last is the count.
  void parallel_shares(std::span<const int64_t> firsts, const Body& body);

  // When the last parallel_for ended; the clock's epoch if there was none.
  std::chrono::steady_clock::time_point last_done() const { return last_done_; }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Limits later jobs to `threads` threads, for tests and benchmarks. Must not be called while a
  // job runs.
  void limit_threads(int threads) { limit_ = threads; }

 private:
  struct Job;
  struct Slot;
  struct Group;
  void work(int index);
  void run(Job& job);
  void run_alone(const Job& job);
  void run_shared(Job& job);
  void run_pieces(Job& job, int index);
  bool run_share(Job& job, int share);
  bool steal_from(Job& job, int group, int index);
  int active_threads() const;

  std::vector<Slot> slots_;    // one per thread
  std::vector<Group> groups_;  // of neighbouring threads
  std::vector<std::thread> workers_;
  std::mutex turn_;          // held by the caller whose job runs
  uint64_t generation_ = 0;  // of the newest job
  std::atomic<int> limit_{1 << 20};
  std::atomic<std::chrono::steady_clock::time_point> last_done_{};
};

// Options of the process's pool, read when it is first used.
struct ComputeOptions {
  int threads = 0;      // --threads; 0: OCTAVO_THREADS, or one per core that this process may use
  bool pinned = false;  // --pin-threads
};
void set_compute_options(const ComputeOptions& options);

// Returns the process's pool. Throws SetupError if OCTAVO_THREADS_BIND is not valid.
ComputePool& compute_pool();

}  // namespace octavo
