// accept_failures.h - what to do when connections cannot be accepted, usually for lack of
// descriptors: wait longer each time, and log seldom. I/O thread only.
#pragma once

#include <chrono>
#include <string>

namespace octavo::server {

class AcceptFailures {
 public:
  using Clock = std::chrono::steady_clock;

  struct Advice {
    std::chrono::milliseconds wait;  // before the next attempt
    std::string line;                // to log; empty for most failures
  };

  Advice failed(const std::string& reason, Clock::time_point now);
  void succeeded() { wait_ = {}; }

 private:
  std::chrono::milliseconds wait_{};
  Clock::time_point logged_{};
  int unlogged_ = 0;  // failures since the last line
};

}  // namespace octavo::server
