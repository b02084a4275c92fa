#include "base/stderr_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace octavo {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLinePatience{100};

}  // namespace

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  if (!report_dropped(message) || !write(message)) ++dropped_;
}

bool StderrSink::report_dropped(const spdlog::details::log_msg& next) {
  if (dropped_ == 0) return true;
  const std::string text =
      fmt::format("{} log lines were dropped because stderr was not read", dropped_);
  spdlog::details::log_msg report(next.logger_name, spdlog::level::warn, text);
  report.time = next.time;
  if (!write(report)) return false;
  dropped_ = 0;
  return true;
}

// A reader that has stopped is waited for once, not for every line.
milliseconds StderrSink::patience() const {
  if (full_) return milliseconds(0);
  return hurrying_ ? std::min(kLinePatience, left_) : kLinePatience;
}

bool StderrSink::write(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  if (cut_) line.push_back('\n');
  formatter_->format(message, line);
  const auto started = steady_clock::now();
  const size_t written = writer_.write({line.data(), line.size()}, patience());
  full_ = written < line.size();
  if (written > 0) cut_ = full_;
  if (hurrying_) {
    left_ -= std::chrono::duration_cast<milliseconds>(steady_clock::now() - started);
    left_ = std::max(left_, milliseconds(0));
  }
  return !full_;
}

}  // namespace octavo
