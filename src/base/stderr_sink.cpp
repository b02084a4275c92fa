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

// The report of lost lines and the line are written together: a short report alone may fit into a pipe
// that is full for all other lines, which would look as if the reader had continued.
void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  const uint64_t lost = dropped_ + (options_.lost_before ? options_.lost_before() : 0);
  spdlog::memory_buf_t text;
  if (cut_) text.push_back('\n');
  if (lost != reported_) append_report(text, message, lost - reported_);
  const size_t report_end = text.size();
  formatter_->format(message, text);
  const size_t written = write_patiently({text.data(), text.size()});
  full_ = written < text.size();
  if (written > 0) cut_ = full_;
  if (written >= report_end) reported_ = lost;
  if (full_) ++dropped_;
}

void StderrSink::append_report(spdlog::memory_buf_t& text, const spdlog::details::log_msg& next,
                               uint64_t count) {
  const std::string line =
      fmt::format("{} log lines were dropped because stderr was not read", count);
  spdlog::details::log_msg report(next.logger_name, spdlog::level::warn, line);
  report.time = next.time;
  formatter_->format(report, text);
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
    const milliseconds taken = elapsed_since(slice_started);
    if (written == line.size() || writer_.is_broken()) {
      if (hurrying) left_ = std::max(left_ - taken, milliseconds(0));
      return written;
    }
    // A slice that ended without success counts, even if it is too short to be measured.
    if (hurrying) left_ = std::max(left_ - std::max(taken, milliseconds(1)), milliseconds(0));
    if (left == milliseconds(0)) return written;
    if (hurrying && left_ == milliseconds(0)) return written;
  }
}

}  // namespace octavo
