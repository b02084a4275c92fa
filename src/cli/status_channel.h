// status_channel.h - reports to the front process that started this server, on --status-fd. Ends
// this process when the front process has ended. Any thread.
#pragma once

#include <chrono>
#include <mutex>

#include "front/child_status.h"

namespace octavo {

class StatusChannel {
 public:
  // `descriptor`: one end of a pair of connected sockets. Throws SetupError if it is none.
  explicit StatusChannel(int descriptor);
  StatusChannel(const StatusChannel&) = delete;
  StatusChannel& operator=(const StatusChannel&) = delete;

  void send(const front::ChildStatus& status);
  // At most ten per second.
  void send_progress(const char* stage, uint64_t done, uint64_t total);

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_progress_;
};

}  // namespace octavo
