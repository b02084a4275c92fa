// stderr_sink.h - spdlog's sink for a stderr that may be a pipe. Lines that its reader does not take
// in time are dropped and counted, so that a full pipe stops neither the server nor its shutdown.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/bounded_writer.h"

namespace octavo {

struct StderrSinkOptions {
  // A reader that takes nothing for this long has stopped; from then on nothing waits for it.
  std::chrono::milliseconds patience{10'000};
  // Lines that were lost before they came to the sink; may be empty.
  std::function<uint64_t()> lost_before = {};
};

class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int descriptor, StderrSinkOptions options = {})
      : options_(std::move(options)), writer_(descriptor) {}

  // Before the end of the process: all remaining lines together may wait for a second. Any thread.
  void hurry() { hurrying_ = true; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  void append_report(spdlog::memory_buf_t& text, const spdlog::details::log_msg& next,
                     uint64_t count);
  size_t write_patiently(std::string_view line);

  StderrSinkOptions options_;
  BoundedWriter writer_;
  std::atomic<bool> hurrying_ = false;
  std::chrono::milliseconds left_{1000};  // while hurrying
  bool full_ = false;                     // the last line was not written
  bool cut_ = false;                      // only the beginning of a line was written
  uint64_t dropped_ = 0;                  // lines of this sink
  uint64_t reported_ = 0;                 // of those and of the lines lost before
};

}  // namespace octavo
