// restarts.h - when a model's process that died is started again, and whether its requests then run
// one at a time. One thread. No MLX.
#pragma once

#include <algorithm>
#include <chrono>

namespace octavo::front {

class Restarts {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The process of a loaded model died. A request of its own may be the reason: after a second death
  // within a minute, requests run one at a time, so that such a request fails alone.
  void died(Time now) {
    deaths_ = deaths_ > 0 && now - last_death_ < kCalm ? deaths_ + 1 : 1;
    last_death_ = now;
    one_at_a_time_ = deaths_ > 1;
  }
  void loaded(Time now) { loaded_ = now; }

  // The first start after a death is immediate; each further one waits twice as long.
  Time start_at() const {
    if (deaths_ < 2) return last_death_;
    const auto wait = std::chrono::milliseconds(500) * (1 << std::min(deaths_ - 2, 6));
    return last_death_ + wait;
  }

  bool one_at_a_time(Time now) {
    if (one_at_a_time_ && loaded_ > last_death_ && now - loaded_ >= kCalm) one_at_a_time_ = false;
    return one_at_a_time_;
  }

 private:
  static constexpr std::chrono::seconds kCalm{60};

  int deaths_ = 0;  // each within a minute of the one before
  bool one_at_a_time_ = false;
  Time last_death_ = {};
  Time loaded_ = {};
};

}  // namespace octavo::front
