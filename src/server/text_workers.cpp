#include "server/text_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/error.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace octavo::server {
namespace {

// Time for a stopped job to end before another one is stopped in its place.
constexpr std::chrono::milliseconds kTimeToStop{1000};
constexpr int kLongJobNice = 10;
constexpr std::chrono::hours kForever{24 * 365};
// Before another attempt without memory.
constexpr std::chrono::milliseconds kMemoryPause{10};

#ifdef __linux__
int this_thread_id() { return ::gettid(); }
// Linux has a priority per thread. It can be lowered, but not raised again.
void lower_priority(int thread_id) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread_id), kLongJobNice);
}
#else
int this_thread_id() { return 0; }
void lower_priority(int) {}
#endif

}  // namespace

void TextJob::stop(const char* reason) {
  const char* none = nullptr;
  reason_.compare_exchange_strong(none, reason);
  stop_.request_stop();
}

TextWorkers::TextWorkers(boost::asio::any_io_executor io, TextWorkerOptions options)
    : io_(std::move(io)), options_(options) {
  try {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < options_.threads; ++i) start_worker();
  } catch (const std::exception& error) {
    stop(kForever);  // those that were started
    throw SetupError(fmt::format(
        "cannot start threads for requests: {}; raise the limit on processes or free memory",
        error.what()));
  }
}

TextWorkers::~TextWorkers() { stop(kForever); }

void TextWorkers::start_worker() {
  Worker& worker = workers_.emplace_back();
  try {
    worker.thread = std::thread([this, &worker] { work(worker); });
  } catch (...) {
    workers_.pop_back();
    throw;
  }
}

// False if the system has no thread or memory for it now.
bool TextWorkers::try_start_worker() {
  try {
    start_worker();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void TextWorkers::work(Worker& self) {
  std::unique_lock lock(mutex_);
  self.thread_id = this_thread_id();
  while (!self.outside) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) break;
    run_next(self, lock);
  }
  self.done = true;
  ended_.notify_all();
}

void TextWorkers::run_next(Worker& self, std::unique_lock<std::mutex>& lock) {
  Jobs taken;
  taken.splice(taken.begin(), queue_, queue_.begin());
  self.job = taken.front();
  self.began = Clock::now();
  TextJob& job = *self.job;
  lock.unlock();
  if (job.stop_reason() == nullptr) job.run();
  lock.lock();
  self.job = nullptr;
  // The I/O thread destroys the job: what it holds belongs to that thread.
  finished_.splice(finished_.end(), taken);
  lock.unlock();
  announce_finished();
  lock.lock();
}

// Posting takes memory. Without it, finished jobs wait.
void TextWorkers::announce_finished() {
  while (true) {
    try {
      boost::asio::post(io_, [this] { end_finished(); });
      return;
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kMemoryPause);
    }
  }
}

void TextWorkers::end_finished() {
  Jobs jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(finished_);
  }
  for (const auto& job : jobs) job->ended();
}

void TextWorkers::submit(std::shared_ptr<TextJob> job) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
}

// Of the jobs outside the pool, the oldest, unless one was asked just now. One that waits is the last
// choice: without it, no processor time is won.
std::shared_ptr<TextJob> TextWorkers::job_to_stop(Clock::time_point now) {
  if (now - last_stop_ < kTimeToStop) return nullptr;
  const Worker* oldest = nullptr;
  const auto rank = [](const Worker& worker) { return std::pair(worker.waits(), worker.began); };
  for (const Worker& worker : workers_) {
    if (!worker.outside || worker.job == nullptr || worker.job->stop_reason() != nullptr) continue;
    if (oldest == nullptr || rank(worker) < rank(*oldest)) oldest = &worker;
  }
  if (oldest == nullptr) return nullptr;
  last_stop_ = now;
  return oldest->job;
}

void TextWorkers::relieve() {
  std::list<Worker> done;
  std::shared_ptr<TextJob> stopped;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    done = take_done();
    const auto now = Clock::now();
    // Outside the pool.
    auto waiting = std::ranges::count_if(
        workers_, [](const Worker& worker) { return worker.outside && worker.waits(); });
    auto busy = std::ranges::count_if(workers_, &Worker::outside) - waiting;
    int left = 0;  // threads in the pool without a long job
    for (Worker& worker : workers_) {
      if (worker.outside) continue;
      if (worker.job == nullptr || now - worker.began < options_.long_job) {
        ++left;
        continue;
      }
      const bool waits = worker.waits();
      const bool has_room =
          waits ? waiting < options_.most_waiting_jobs : busy < options_.most_long_jobs;
      if (has_room && try_start_worker()) {
        // The new worker is at the end of the list, where this loop counts it.
        worker.outside = true;
        lower_priority(worker.thread_id);
        ++(waits ? waiting : busy);
      }
    }
    if (left == 0) stopped = job_to_stop(now);
  }
  // Without the lock: the work may have registered a callback.
  if (stopped != nullptr) stopped->stop("too many requests take long to prepare; try again later");
  for (Worker& worker : done) worker.thread.join();
}

std::list<TextWorkers::Worker> TextWorkers::take_done() {
  std::list<Worker> done;
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const auto next = std::next(worker);
    if (worker->done) done.splice(done.end(), workers_, worker);
    worker = next;
  }
  return done;
}

void TextWorkers::stop_jobs(const char* reason) {
  Jobs jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs = queue_;
    for (const Worker& worker : workers_)
      if (worker.job != nullptr) jobs.push_back(worker.job);
  }
  for (const auto& job : jobs) job->stop(reason);
}

bool TextWorkers::stop(std::chrono::milliseconds limit) {
  stop_jobs("the server is shutting down");
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  const auto all_done = [&] { return std::ranges::all_of(workers_, &Worker::done); };
  if (!ended_.wait_for(lock, limit, all_done)) return false;
  std::list<Worker> done = take_done();
  lock.unlock();
  for (Worker& worker : done) worker.thread.join();
  return true;
}

int TextWorkers::busy_for(std::chrono::milliseconds time) const {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  return static_cast<int>(std::ranges::count_if(workers_, [&](const Worker& worker) {
    if (worker.job == nullptr || worker.waits()) return false;
    return now - std::max(worker.began, worker.job->waiting().last_end()) >= time;
  }));
}

}  // namespace octavo::server
