#include "base/compute_pool.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>

#ifdef __linux__
#include <sched.h>
#endif

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

ComputePool::ComputePool(int threads) {
  OCTAVO_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ComputePool::~ComputePool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
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

void ComputePool::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || (job_ != nullptr && generation_ != seen); });
    if (stopping_) return;
    seen = generation_;
    Job& job = *job_;
    ++busy_;
    lock.unlock();
    run_pieces(job);
    lock.lock();
    if (--busy_ == 0) done_.notify_all();
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
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      ++generation_;
    }
    wake_.notify_all();
  }
  run_pieces(job);
  if (shared) {
    // A worker that has not woken yet must not find the job later, so it is withdrawn first.
    std::unique_lock lock(mutex_);
    job_ = nullptr;
    done_.wait(lock, [&] { return busy_ == 0; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

int usable_cores() {
  int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::min(cores, CPU_COUNT(&set));
  // cgroup v2: "<quota> <period>" in microseconds, or "max <period>".
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    cores = std::min(cores, static_cast<int>(std::max(1.0, std::stod(quota) / period)));
  }
#endif
  return std::max(1, cores);
}

ComputePool& compute_pool() {
  static ComputePool pool([] {
    const char* wanted = std::getenv("OCTAVO_THREADS");
    const int threads = wanted != nullptr ? std::atoi(wanted) : 0;
    return threads >= 1 ? threads : usable_cores();
  }());
  return pool;
}

}  // namespace octavo
