#include "base/stderr_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace octavo {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLongestSlice{100};  // so that hurry() is noticed

milliseconds elapsed_since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

}  // namespace

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  if (!report_lost(message) || !write(message)) ++dropped_;
}

bool StderrSink::report_lost(const spdlog::details::log_msg& next) {
  const uint64_t lost = dropped_ + (options_.lost_before ? options_.lost_before() : 0);
  if (lost == reported_) return true;
  const std::string text =
      fmt::format("{} log lines were dropped because stderr was not read", lost - reported_);
  spdlog::details::log_msg report(next.logger_name, spdlog::level::warn, text);
  report.time = next.time;
  if (!write(report)) return false;
  reported_ = lost;
  return true;
}

bool StderrSink::write(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  if (cut_) line.push_back('\n');
  formatter_->format(message, line);
  const size_t written = write_patiently({line.data(), line.size()});
  full_ = written < line.size();
  if (written > 0) cut_ = full_;
  return !full_;
}

size_t StderrSink::write_patiently(std::string_view line) {
  const auto started = steady_clock::now();
  const milliseconds patience = full_ ? milliseconds(0) : options_.patience;
  size_t written = 0;
  while (true) {
    const bool hurrying = hurrying_;
    const milliseconds left = std::max(patience - elapsed_since(started), milliseconds(0));
    const auto slice_started = steady_clock::now();
    written += writer_.write(line.substr(written),
                             std::min({left, kLongestSlice, hurrying ? left_ : left}));
    if (hurrying) left_ = std::max(left_ - elapsed_since(slice_started), milliseconds(0));
    if (written == line.size() || writer_.is_broken()) return written;
    if (left == milliseconds(0)) return written;
    if (hurrying && left_ == milliseconds(0)) return written;
  }
}

}  // namespace octavo
