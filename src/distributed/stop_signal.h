// stop_signal.h - ends waits in poll(). Any thread. No MLX.
#pragma once

#include <atomic>

namespace octavo {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void stop();
  bool stopped() const { return stopped_; }
  // Readable after stop().
  int descriptor() const { return read_end_; }

 private:
  std::atomic<bool> stopped_ = false;
  int read_end_ = -1;
  int write_end_ = -1;
};

}  // namespace octavo
