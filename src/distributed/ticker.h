// ticker.h - calls a function at intervals, on a thread of its own. No MLX.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace octavo {

class Ticker {
 public:
  // `name`: of the thread. `call` must not throw.
  Ticker(const char* name, std::chrono::milliseconds interval, std::function<void()> call);
  // Waits for a running call.
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void run(const char* name, std::chrono::milliseconds interval, const std::function<void()>& call);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
