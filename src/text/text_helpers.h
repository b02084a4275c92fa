// text_helpers.h - a pool of helper processes for one kind of job. Any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "text/helper_process.h"

namespace octavo {

struct TextHelperOptions {
  std::vector<std::string> command;    // program and arguments
  std::function<std::string()> setup;  // the first message to each helper
  int processes = 1;
  bool start_at_once = false;  // otherwise with the first job
  HelperLimits setup_limits = {.processor_time = std::chrono::seconds(60),
                               .elapsed = std::chrono::seconds(60)};
  // How long a job may wait for a helper that is free.
  std::chrono::milliseconds queue_time{10'000};
  // After the first failure to start a helper. It doubles with each further one, up to 30 times.
  std::chrono::milliseconds restart_pause{1000};
};

// Why a job has no result.
class HelperFailure : public std::runtime_error {
 public:
  enum class Reason {
    kTooLong,      // exceeded its time
    kDied,         // most likely exceeded its memory
    kUnavailable,  // no helper could be started, none was free in time, or all were killed
    kStopped
  };
  HelperFailure(Reason reason, const std::string& message)
      : std::runtime_error(message), reason_(reason) {}
  Reason reason() const { return reason_; }

 private:
  Reason reason_;
};

// Helpers that were killed or died are replaced, also those that die while idle.
class TextHelpers {
 public:
  explicit TextHelpers(TextHelperOptions options);
  ~TextHelpers();  // jobs must have ended
  TextHelpers(const TextHelpers&) = delete;
  TextHelpers& operator=(const TextHelpers&) = delete;

  // Runs a job, and again, once per process of the pool, if its helper is killed from outside.
  // Throws HelperFailure, or the RequestError that the job ended with. After a requested stop it returns within 100 ms.
  std::string run(std::string_view job, HelperLimits limits, const std::stop_token& stop = {});

  // False while there is no helper and several attempts to start one have failed.
  bool available() const;
  // The processes that are ready for a job.
  std::vector<pid_t> idle_processes() const;

 private:
  class Borrowed;

  void keep_started();
  void start_missing(std::unique_lock<std::mutex>& lock);
  void start_failed(std::unique_lock<std::mutex>& lock);
  HelperProcess start() const;
  HelperProcess take(const std::stop_token& stop);
  void give_back(HelperProcess helper) noexcept;
  bool ending() const { return ending_.stop_requested(); }

  TextHelperOptions options_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::stop_source ending_;  // also ends the set-up of a helper
  bool wanted_;
  int missing_;                      // to be started
  int failures_ = 0;                 // of the last attempts to start one
  std::string problem_;              // why the last one could not be started; empty: it could
  std::vector<HelperProcess> idle_;  // with room for all, so that giving one back cannot fail
  // Starts all helpers, which end with the thread that started them. Last: it uses all above.
  std::thread keeper_;
};

}  // namespace octavo
