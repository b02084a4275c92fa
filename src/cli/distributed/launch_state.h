// launch_state.h - decides which rank gets which signal and when, so that all ranks end together.
// Does no I/O, so that tests set the time. One thread. No MLX.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct LaunchTimes {
  // After a rank has ended, the others have this long to answer their requests and exit by
  // themselves.
  std::chrono::milliseconds grace{3000};
  // From SIGTERM to SIGKILL.
  std::chrono::milliseconds to_kill{1000};
};

class LaunchState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Signal {
    int rank;
    int signal;
    bool operator==(const Signal&) const = default;
  };

  explicit LaunchState(int ranks, LaunchTimes times = {});

  // A rank has ended; 128 + the signal if one ended it.
  void ended(int rank, int exit_code, Time now);
  // SIGTERM or SIGINT arrived. The first drains rank 0, which ends the workers when it is done; the
  // second ends all ranks.
  std::vector<Signal> interrupted(Time now);
  // The signals that are due.
  std::vector<Signal> due(Time now);
  // When due() next returns any.
  std::optional<Time> next() const;

  bool all_ended() const;
  bool is_running(int rank) const { return !exit_codes_[static_cast<size_t>(rank)].has_value(); }
  // Of rank 0 if it failed; 1 if only a worker failed; otherwise 0. After all have ended.
  int exit_status() const;
  // "rank 1 exited with status 70", "rank 2 was ended by signal 9": the first that ended before it
  // should have; empty if none.
  const std::string& reason() const { return reason_; }

 private:
  std::vector<Signal> to_running(int signal) const;
  void end_all(Time term_at);

  LaunchTimes times_;
  std::vector<std::optional<int>> exit_codes_;
  bool draining_ = false;
  std::optional<Time> term_at_ = {};  // SIGTERM to all that run
  std::optional<Time> kill_at_ = {};
  std::string reason_;
};

}  // namespace octavo
