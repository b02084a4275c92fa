// step_timer.h - measures the steps in flight. No MLX. Engine thread only.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace octavo {

class StepTimer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Took {
    double since_result = 0;  // from the previous result, or from its start if it began alone
    // How long it occupied a stage; `since_result` if there is only one stage.
    double seconds = 0;
    int drawing_rows = 0;
  };

  explicit StepTimer(int stages) : stages_(stages) {}

  // A step is about to be queued. `drawing_rows`: 0 if not every row draws.
  void start(int drawing_rows, Time now);
  // The oldest step's result has come.
  Took finish(Time now);
  // All steps in flight were dropped.
  void drop();
  // No step is in flight, and none will be for a while.
  void pause() { last_result_.reset(); }
  // The time of the newest result; unset if the device has been idle since.
  std::optional<Time> last_result() const { return last_result_; }
  bool idle() const { return steps_.empty(); }

 private:
  struct Step {
    int drawing_rows;
    Time started;
    bool keeps_up;  // all stages are busy until it completes
  };

  int stages_;
  std::deque<Step> steps_;  // in flight, oldest first
  Time began_ = {};         // of the oldest step: its start or the result before it
  std::optional<Time> last_result_ = {};
};

}  // namespace octavo
