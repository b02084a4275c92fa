// progress_bar.h - one line on a terminal for anything that takes over a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace octavo {

// Draws on stderr when it is a terminal, otherwise says nothing. Clears its line when it dies.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of `total` bytes.
  void update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point started_;
  Clock::time_point last_draw_;
};

}  // namespace octavo
