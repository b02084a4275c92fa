// progress_bar.h - a one-line progress bar on the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace octavo {

// "1.21 GiB of 4.00 GiB  512 MiB/s"
std::string format_byte_progress(uint64_t done, uint64_t total, double seconds);

// Draws on stderr if that is a terminal; otherwise prints nothing. Clears its line on destruction.
class ProgressBar {
 public:
  // Returns the text after the bar, given that `done` of `total` took `seconds`.
  using Format = std::function<std::string(uint64_t done, uint64_t total, double seconds)>;

  explicit ProgressBar(std::string label, Format format = format_byte_progress);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  Format format_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point started_;
  Clock::time_point last_draw_;
};

}  // namespace octavo
