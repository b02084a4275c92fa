// stderr_sink.h - spdlog's sink for a stderr that may be a pipe. Lines that its reader does not take
// in time are dropped and counted, so that a full pipe stops neither the server nor its shutdown.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/bounded_writer.h"

namespace octavo {

class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int descriptor) : writer_(descriptor) {}

  // Before the end of the process: all remaining lines together may wait for a second.
  void hurry() { hurrying_ = true; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  bool write(const spdlog::details::log_msg& message);
  bool report_dropped(const spdlog::details::log_msg& next);
  std::chrono::milliseconds patience() const;

  BoundedWriter writer_;
  std::atomic<bool> hurrying_ = false;
  std::chrono::milliseconds left_{1000};  // while hurrying
  bool full_ = false;                     // the last line was not written
  bool cut_ = false;                      // only the beginning of a line was written
  uint64_t dropped_ = 0;                  // lines since the last report
};

}  // namespace octavo
