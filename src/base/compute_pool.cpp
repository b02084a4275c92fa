#include "base/compute_pool.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include "base/cgroup.h"
#include "base/error.h"

namespace octavo {

struct ComputePool::Job {
  Job(int64_t count_in, int64_t grain_in, const std::function<void(int64_t, int64_t)>& body_in)
      : count(count_in), grain(grain_in), body(body_in) {}

  const int64_t count;
  const int64_t grain;
  const std::function<void(int64_t, int64_t)>& body;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex error_mutex;
};

namespace {

using Clock = std::chrono::steady_clock;

// The kernels of a step are a few microseconds apart, and waking a sleeping thread takes longer
// than many kernels run. So a helper polls for the next job this long before it sleeps.
constexpr auto kPollTime = std::chrono::microseconds(200);

void pause_briefly() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() is true; after a while, yields the core in between.
template <typename Done>
void spin_until(Done done) {
  for (int i = 0; !done(); ++i) {
    if (i < 256) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
}

void pin_to_core(int index) {
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int core = 0, found = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || found++ != index) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
    return;
  }
#else
  static_cast<void>(index);
#endif
}

}  // namespace

ComputePool::ComputePool(int threads, bool pinned) {
  OCTAVO_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i, pinned] {
      if (pinned) pin_to_core(i);
      work(i);
    });
  }
}

ComputePool::~ComputePool() {
  stopping_ = true;
  ++generation_;
  wake_helpers();
  for (auto& worker : workers_) worker.join();
}

void ComputePool::run_pieces(Job& job) {
  for (;;) {
    const int64_t begin = job.next.fetch_add(job.grain, std::memory_order_relaxed);
    if (begin >= job.count || job.failed.load(std::memory_order_relaxed)) return;
    try {
      job.body(begin, std::min(begin + job.grain, job.count));
    } catch (...) {
      const std::lock_guard lock(job.error_mutex);
      if (!job.error) job.error = std::current_exception();
      job.failed = true;
    }
  }
}

// Returns true when there is a job newer than `seen`, or false when the pool is being destroyed.
bool ComputePool::wait_for_job(uint64_t seen) {
  const auto deadline = Clock::now() + kPollTime;
  for (int i = 0; generation_.load(std::memory_order_acquire) == seen; ++i) {
    pause_briefly();
    if (i % 64 != 63) continue;
    std::this_thread::yield();
    if (Clock::now() < deadline) continue;
    std::unique_lock lock(park_mutex_);
    ++parked_;
    // wake_helpers() reads parked_ after the generation has changed, so either it sees this helper
    // parked or the helper sees the new generation.
    park_.wait(lock, [&] { return generation_.load() != seen; });
    --parked_;
  }
  return !stopping_;
}

void ComputePool::wake_helpers() {
  if (parked_.load() == 0) return;
  { const std::lock_guard lock(park_mutex_); }
  park_.notify_all();
}

void ComputePool::work(int index) {
  uint64_t seen = 0;
  while (wait_for_job(seen)) {
    seen = generation_.load();
    if (index >= limit_.load(std::memory_order_relaxed)) continue;
    // The caller withdraws the job before it waits for active_ to fall to zero, so a job found
    // after this increment stays alive until the decrement.
    ++active_;
    if (Job* job = job_.load()) run_pieces(*job);
    --active_;
  }
}

void ComputePool::parallel_for(int64_t count, int64_t grain,
                               const std::function<void(int64_t, int64_t)>& body) {
  OCTAVO_CHECK(grain >= 1);
  if (count <= 0) return;
  const std::lock_guard turn(turn_);
  Job job(count, grain, body);
  const bool shared = !workers_.empty() && count > grain;
  if (shared) {
    job_ = &job;
    ++generation_;
    wake_helpers();
  }
  run_pieces(job);
  if (shared) {
    job_ = nullptr;
    spin_until([&] { return active_.load() == 0; });
  }
  last_done_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  if (job.error) std::rethrow_exception(job.error);
}

int usable_cores() {
  int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::min(cores, CPU_COUNT(&set));
  if (const auto quota = cgroup_limits().cores)
    cores = std::min(cores, static_cast<int>(std::max(1.0, *quota)));
#endif
  return std::max(1, cores);
}

namespace {

ComputeOptions& compute_options() {
  static ComputeOptions options;
  return options;
}

int wanted_threads() {
  if (compute_options().threads >= 1) return compute_options().threads;
  const char* wanted = std::getenv("OCTAVO_THREADS");
  const int threads = wanted != nullptr ? std::atoi(wanted) : 0;
  return threads >= 1 ? threads : usable_cores();
}

}  // namespace

void set_compute_options(const ComputeOptions& options) { compute_options() = options; }

ComputePool& compute_pool() {
  static ComputePool pool(wanted_threads(), compute_options().pinned);
  return pool;
}

}  // namespace octavo
