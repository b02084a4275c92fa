#include "base/compute_pool.h"

#include <algorithm>
#include <condition_variable>
#include <exception>

#include "base/error.h"
#include "base/topology/bind_thread.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// The kernels of a step are a few microseconds apart, and waking a sleeping thread takes longer
// than many kernels run. So a helper polls for the next job this long before it sleeps.
constexpr auto kPollTime = std::chrono::microseconds(200);

// What different threads write is at least this far apart: two lines of x86, whose prefetcher
// fetches them in pairs, and one of Apple's.
constexpr size_t kLineBytes = 128;

// Threads that poll the same line for jobs. With all threads on one line, the last of 96 would see
// a job long after the first; with a line each, publishing a job would take as long.
constexpr int kGroupThreads = 8;

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

}  // namespace

struct ComputePool::Job {
  int64_t first_of(int share) const {
    return firsts.empty() ? first_of_share(pieces, shares, share)
                          : firsts[static_cast<size_t>(share)];
  }
  void run(int64_t piece) const { body(piece * grain, std::min((piece + 1) * grain, count)); }

  const int64_t count;
  const int64_t grain;
  const int64_t pieces;
  const std::span<const int64_t> firsts;  // of the shares; empty: equal shares
  const int shares;
  const int threads;  // that may run it
  const Body& body;
  uint64_t generation = 0;
  std::atomic<bool> failed{false};
  std::exception_ptr error{};
  std::mutex error_mutex{};
};

// What a thread writes in a job.
struct ComputePool::Slot {
  // Returns how many pieces of the share are taken in job `generation`, and takes one if none is.
  // Threads that steal call it too. A counter of an older job counts as zero: setting all counters
  // before a job would take a cache miss per thread.
  int64_t start(uint32_t generation) {
    uint64_t value = taken.load(std::memory_order_relaxed);
    const uint64_t one = uint64_t{generation} << 32 | 1;
    if (value >> 32 != generation &&
        taken.compare_exchange_strong(value, one, std::memory_order_relaxed)) {
      return 0;
    }
    return static_cast<uint32_t>(value);
  }

  // Takes a piece of a share that start() was called for; returns how many were taken before.
  int64_t next() { return static_cast<uint32_t>(taken.fetch_add(1, std::memory_order_relaxed)); }

  // Pieces taken from the share, below the generation of the job. Only this thread writes it until
  // others steal.
  alignas(kLineBytes) std::atomic<uint64_t> taken{0};
  // The thread may still use the job. The caller reads one line per thread instead of all threads
  // changing one counter. A tree would have to wait for threads that sleep. It is on the line of
  // `taken` because the caller waits for it only when there is nothing left to take.
  std::atomic<bool> inside{false};
};

struct ComputePool::Group {
  // Returns when there is a job newer than `seen`, or the pool is being destroyed.
  void wait_for_job(uint64_t seen) {
    const auto deadline = Clock::now() + kPollTime;
    for (int i = 0; generation.load(std::memory_order_acquire) == seen; ++i) {
      pause_briefly();
      if (i % 64 != 63) continue;
      std::this_thread::yield();
      if (Clock::now() < deadline) continue;
      std::unique_lock lock(park_mutex);
      ++parked;
      // wake() reads `parked` after the generation has changed, so either it sees this helper
      // parked or the helper sees the new generation.
      park.wait(lock, [&] { return generation.load() != seen; });
      --parked;
    }
  }

  void wake() {
    if (parked.load() == 0) return;
    { const std::lock_guard lock(park_mutex); }
    park.notify_all();
  }

  // Written by the caller.
  alignas(kLineBytes) std::atomic<uint64_t> generation{0};
  std::atomic<Job*> job{nullptr};
  std::atomic<bool> stopping{false};

  // The last job in which a thread found all shares of this group taken, so that others need not
  // look at each.
  alignas(kLineBytes) std::atomic<uint64_t> exhausted{0};

  // Idle helpers sleep here.
  alignas(kLineBytes) std::atomic<int> parked{0};
  std::mutex park_mutex;
  std::condition_variable park;
};

ComputePool::ComputePool(int threads, std::span<const CpuId> cpus)
    : slots_(static_cast<size_t>(std::max(1, threads))),
      groups_((slots_.size() + kGroupThreads - 1) / kGroupThreads) {
  OCTAVO_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) {
    const bool bound = static_cast<size_t>(i) < cpus.size();
    workers_.emplace_back([this, i, cpu = bound ? cpus[static_cast<size_t>(i)] : -1] {
      if (cpu >= 0) bind_thread(cpu);
      work(i);
    });
  }
}

ComputePool::~ComputePool() {
  ++generation_;
  for (Group& group : groups_) {
    group.stopping = true;
    group.generation = generation_;
    group.wake();
  }
  for (auto& worker : workers_) worker.join();
}

int ComputePool::active_threads() const {
  return std::clamp(limit_.load(std::memory_order_relaxed), 1, threads());
}

// Runs the pieces of the share that are left. Returns false if the job has failed.
bool ComputePool::run_share(Job& job, int share) {
  Slot& slot = slots_[static_cast<size_t>(share)];
  const int64_t first = job.first_of(share);
  const int64_t size = job.first_of(share + 1) - first;
  if (size == 0) return true;
  int64_t piece = slot.start(static_cast<uint32_t>(job.generation));
  if (piece > 0) piece = piece < size ? slot.next() : size;
  for (; piece < size; piece = slot.next()) {
    if (job.failed.load(std::memory_order_relaxed)) return false;
    try {
      job.run(first + piece);
    } catch (...) {
      const std::lock_guard lock(job.error_mutex);
      if (!job.error) job.error = std::current_exception();
      job.failed = true;
    }
  }
  return true;
}

// Runs what is left of the shares of a group, except the thread's own.
bool ComputePool::steal_from(Job& job, int group, int index) {
  Group& from = groups_[static_cast<size_t>(group)];
  const bool is_only_group = job.shares <= kGroupThreads;
  if (!is_only_group && from.exhausted.load(std::memory_order_relaxed) == job.generation)
    return true;
  const int first = group * kGroupThreads;
  const int size = std::min(kGroupThreads, job.shares - first);
  // Different threads start with different shares.
  const bool has_own = first <= index && index < first + size;
  for (int i = has_own ? 1 : 0; i < size; ++i) {
    if (!run_share(job, first + (index % kGroupThreads + i) % size)) return false;
  }
  if (!is_only_group) from.exhausted.store(job.generation, std::memory_order_relaxed);
  return true;
}

void ComputePool::run_pieces(Job& job, int index) {
  if (index < job.shares && !run_share(job, index)) return;
  const int groups = (job.shares + kGroupThreads - 1) / kGroupThreads;
  for (int i = 0; i < groups; ++i) {
    if (!steal_from(job, (index / kGroupThreads + i) % groups, index)) return;
  }
}

void ComputePool::work(int index) {
  Group& group = groups_[static_cast<size_t>(index / kGroupThreads)];
  Slot& slot = slots_[static_cast<size_t>(index)];
  for (uint64_t seen = 0;;) {
    group.wait_for_job(seen);
    if (group.stopping) return;
    seen = group.generation.load();
    // The caller withdraws the job before it reads `inside`, so a job found after this store stays
    // alive until the next.
    slot.inside = true;
    if (Job* job = group.job.load(); job != nullptr && index < job->threads)
      run_pieces(*job, index);
    slot.inside.store(false, std::memory_order_release);
  }
}

void ComputePool::run_alone(const Job& job) {
  for (int64_t piece = 0; piece < job.pieces; ++piece) job.run(piece);
}

void ComputePool::run_shared(Job& job) {
  // Slots keep 32 bits of it, so their counters of 2^32 jobs ago must be gone.
  if (static_cast<uint32_t>(++generation_) == 0) {
    for (Slot& slot : slots_) slot.taken = 0;
    ++generation_;
  }
  job.generation = generation_;
  for (Group& group : groups_) {
    group.job.store(&job, std::memory_order_release);
    group.generation = generation_;
  }
  for (Group& group : groups_) group.wake();
  run_pieces(job, 0);
  for (Group& group : groups_) group.job = nullptr;
  for (Slot& slot : slots_) spin_until([&] { return !slot.inside.load(); });
}

void ComputePool::run(Job& job) {
  OCTAVO_CHECK(job.pieces < int64_t{1} << 31);
  const std::lock_guard turn(turn_);
  if (job.threads == 1 || job.pieces == 1) {
    run_alone(job);
  } else {
    run_shared(job);
  }
  last_done_.store(Clock::now(), std::memory_order_relaxed);
  if (job.error) std::rethrow_exception(job.error);
}

void ComputePool::parallel_for(int64_t count, int64_t grain, const Body& body) {
  OCTAVO_CHECK(grain >= 1);
  if (count <= 0) return;
  const int active = active_threads();
  Job job{.count = count,
          .grain = grain,
          .pieces = (count + grain - 1) / grain,
          .firsts = {},
          .shares = active,
          .threads = active,
          .body = body};
  run(job);
}

void ComputePool::parallel_shares(std::span<const int64_t> firsts, const Body& body) {
  OCTAVO_CHECK(firsts.size() >= 2 && firsts.size() <= slots_.size() + 1 && firsts.front() == 0);
  const int64_t count = firsts.back();
  if (count == 0) return;
  Job job{.count = count,
          .grain = 1,
          .pieces = count,
          .firsts = firsts,
          .shares = static_cast<int>(firsts.size()) - 1,
          .threads = active_threads(),
          .body = body};
  run(job);
}

}  // namespace octavo
