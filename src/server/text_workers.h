// text_workers.h - threads for work on text that would block the I/O thread: JSON, templates,
// tokenizing, grammars, long responses.
//
// Long jobs never occupy the pool: a job that runs for longer than `long_job` takes its thread out
// of the pool. A new thread replaces it, and the old one runs with lower priority and ends with its
// job. At most `most_long_jobs` threads are outside the pool. When the pool is full of further long
// jobs, the oldest one outside is asked to stop. Jobs that wait (api::Waiting) have a limit of their
// own.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "api/preparation.h"

namespace octavo::server {

// Work for a text worker. It is stopped through a token, which the work has to look at.
class TextJob {
 public:
  virtual ~TextJob() = default;

  std::stop_token stop_token() const { return stop_.get_token(); }
  // Any thread. The first reason stays; it must be a literal. A queued job that is stopped never
  // runs.
  void stop(const char* reason);
  // Why the job was stopped; null if it was not.
  const char* stop_reason() const { return reason_.load(); }
  const api::WaitRecord& waiting() const { return waiting_; }

 protected:
  virtual void run() noexcept = 0;    // on a worker
  virtual void ended() noexcept = 0;  // on the I/O thread, also if it never ran

  api::WaitRecord waiting_;  // of the work

 private:
  friend class TextWorkers;
  std::stop_source stop_;
  std::atomic<const char*> reason_ = nullptr;
};

struct TextWorkerOptions {
  int threads = 2;
  int most_long_jobs = 16;      // most of them wait for a helper process
  int most_waiting_jobs = 256;  // for images: their turn to be decoded, or a download
  std::chrono::milliseconds long_job{200};
};

class TextWorkers {
 public:
  // Throws SetupError if the system has no threads for it.
  TextWorkers(boost::asio::any_io_executor io, TextWorkerOptions options);
  // Stops, and waits for running jobs.
  ~TextWorkers();
  TextWorkers(const TextWorkers&) = delete;
  TextWorkers& operator=(const TextWorkers&) = delete;

  void submit(std::shared_ptr<TextJob> job);
  // Takes the threads of long jobs out of the pool. Call it every `long_job` while a job has not
  // ended.
  void relieve();

  // Asks all jobs to stop, queued ones included.
  void stop_jobs(const char* reason);
  // Drops queued jobs and ends the threads. False if a job is still running after `limit`.
  bool stop(std::chrono::milliseconds limit);

  // Number of threads that have run one job for at least this long since it last waited.
  int busy_for(std::chrono::milliseconds time) const;
  std::chrono::milliseconds long_job() const { return options_.long_job; }

 private:
  using Clock = std::chrono::steady_clock;
  // A list, whose nodes move between lists without an allocation.
  using Jobs = std::list<std::shared_ptr<TextJob>>;
  struct Worker {
    std::thread thread = {};
    std::shared_ptr<TextJob> job = nullptr;  // null: idle
    Clock::time_point began = {};
    int thread_id = 0;     // of the system, for its priority
    bool outside = false;  // of the pool
    bool done = false;

    bool waits() const { return job != nullptr && job->waiting().waits(); }
  };

  void start_worker();
  bool try_start_worker();
  void work(Worker& self);
  void run_next(Worker& self, std::unique_lock<std::mutex>& lock);
  void announce_finished();
  void end_finished();
  std::shared_ptr<TextJob> job_to_stop(Clock::time_point now);
  std::list<Worker> take_done();

  const boost::asio::any_io_executor io_;
  const TextWorkerOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;   // a job is queued, or stopping_
  std::condition_variable ended_;  // a worker is done
  Jobs queue_;
  Jobs finished_;              // for the I/O thread, which ends and destroys them
  std::list<Worker> workers_;  // a list: threads refer to their own
  Clock::time_point last_stop_ = {};
  bool stopping_ = false;
};

}  // namespace octavo::server
