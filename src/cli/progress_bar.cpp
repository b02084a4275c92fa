#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/units.h"

namespace octavo {
namespace {

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

std::string format_byte_progress(uint64_t done, uint64_t total, double seconds) {
  const auto rate = seconds > 0 ? static_cast<uint64_t>(static_cast<double>(done) / seconds) : 0;
  return fmt::format("{} of {}  {}/s", format_bytes(done), format_bytes(total), format_bytes(rate));
}

ProgressBar::ProgressBar(std::string label, Format format)
    : label_(std::move(label)),
      format_(std::move(format)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      started_(Clock::now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  using namespace std::chrono_literals;
  const auto now = Clock::now();
  if (!terminal_ || total == 0 || now - last_draw_ < 50ms) return;
  last_draw_ = now;
  drawn_ = true;
  constexpr int kWidth = 30;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<int>(share * kWidth);
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::string line = fmt::format("{} [{:#<{}}{:.<{}}] {:3.0f}%  {}", label_, "", filled, "",
                                 kWidth - filled, share * 100, format_(done, total, seconds));
  line.resize(
      std::min(line.size(), terminal_columns() - 1));  // a wrapped line cannot be overwritten
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

}  // namespace octavo
