#include "cli/distributed/launch_state.h"

#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX

#include <algorithm>

namespace octavo {
namespace {

// Higher codes are statuses: ssh exits with 255 when it cannot connect.
constexpr int kLastSignal = 64;

}  // namespace

LaunchState::LaunchState(int ranks, LaunchTimes times)
    : times_(times), exit_codes_(static_cast<size_t>(ranks)) {}

void LaunchState::ended(int rank, int exit_code, Time now) {
  exit_codes_[static_cast<size_t>(rank)] = exit_code;
  const bool expected = draining_ && exit_code == 0;
  if (!expected && reason_.empty()) {
    const int signal = exit_code - 128;
    reason_ = signal > 0 && signal <= kLastSignal
                  ? fmt::format("rank {} was ended by signal {}", rank, signal)
                  : fmt::format("rank {} exited with status {}", rank, exit_code);
  }
  end_all(now + times_.grace);
}

void LaunchState::end_all(Time term_at) {
  if (!term_at_ && !kill_at_) term_at_ = term_at;
}

std::vector<LaunchState::Signal> LaunchState::interrupted(Time now) {
  if (!draining_ && is_running(0)) {
    draining_ = true;
    return {{0, SIGTERM}};
  }
  draining_ = true;
  term_at_.reset();
  if (!kill_at_) kill_at_ = now + times_.to_kill;
  return to_running(SIGTERM);
}

std::vector<LaunchState::Signal> LaunchState::due(Time now) {
  if (term_at_ && now >= *term_at_) {
    kill_at_ = *term_at_ + times_.to_kill;
    term_at_.reset();
    return to_running(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_ = now + times_.to_kill;  // again, if one does not end
    return to_running(SIGKILL);
  }
  return {};
}

std::optional<LaunchState::Time> LaunchState::next() const {
  if (all_ended()) return std::nullopt;
  return term_at_ ? term_at_ : kill_at_;
}

bool LaunchState::all_ended() const {
  return std::ranges::all_of(exit_codes_, [](const auto& code) { return code.has_value(); });
}

int LaunchState::exit_status() const {
  const int first = exit_codes_.front().value_or(1);
  if (first != 0) return first;
  return reason_.empty() ? 0 : 1;
}

std::vector<LaunchState::Signal> LaunchState::to_running(int signal) const {
  std::vector<Signal> signals;
  for (int rank = 0; rank < static_cast<int>(exit_codes_.size()); ++rank)
    if (is_running(rank)) signals.push_back({rank, signal});
  return signals;
}

}  // namespace octavo
