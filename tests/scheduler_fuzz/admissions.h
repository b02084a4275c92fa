// admissions.h - checks in which order scheduler_fuzz's requests leave the queue. No MLX.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "base/error.h"
#include "scheduler_fuzz/totals.h"

namespace octavo {

// A new owner's request is admitted before the tail of a call that arrived with it, and no
// background request before another one that arrived earlier.
class AdmissionOrder {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Arrival {
    bool background = false;
    int race = -1;  // of start_race()
    bool newcomer = false;
    Time time = std::chrono::steady_clock::now();
  };

  explicit AdmissionOrder(FuzzTotals& totals) : totals_(totals) {}

  // A race is between the tail of a call of several requests and one request of another owner that
  // arrives after it.
  int start_race() {
    races_.emplace_back();
    ++totals_.races;
    return static_cast<int>(races_.size()) - 1;
  }

  void admitted(const Arrival& arrival, Time time) {
    if (arrival.background) {
      background_.push_back(time);
      ++totals_.background;
    } else {
      waits_.push_back({arrival.time, time});
    }
    if (arrival.race < 0) return;
    Race& race = races_[static_cast<size_t>(arrival.race)];
    std::optional<Time>& first = arrival.newcomer ? race.newcomer : race.tail;
    first = std::min(first.value_or(time), time);
    if (race.newcomer && race.tail) OCTAVO_CHECK(*race.newcomer <= *race.tail);
  }

  void check_background() {
    std::ranges::sort(background_);
    for (const Wait& wait : waits_) {
      const auto next = std::ranges::upper_bound(background_, wait.from);
      OCTAVO_CHECK(next == background_.end() || *next >= wait.to);
    }
  }

 private:
  struct Race {
    std::optional<Time> newcomer = {};  // when it was admitted
    std::optional<Time> tail = {};      // when the first of the call's later requests was
  };
  // How long a request that is not a background one waited.
  struct Wait {
    Time from, to;
  };

  FuzzTotals& totals_;
  std::vector<Race> races_;
  std::vector<Time> background_;
  std::vector<Wait> waits_;
};

}  // namespace octavo
