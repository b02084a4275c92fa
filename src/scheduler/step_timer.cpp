#include "scheduler/step_timer.h"

#include "base/error.h"

namespace octavo {

void StepTimer::start(int drawing_rows, Time now) {
  if (steps_.empty()) began_ = now;
  const bool keeps_up = static_cast<int>(steps_.size()) + 1 >= stages_;
  steps_.push_back({drawing_rows, now, keeps_up});
}

StepTimer::Took StepTimer::finish(Time now) {
  OCTAVO_CHECK(!steps_.empty());
  const Step step = steps_.front();
  steps_.pop_front();
  const auto seconds = [](auto duration) {
    return std::chrono::duration<double>(duration).count();
  };
  Took took{.since_result = seconds(now - began_), .drawing_rows = step.drawing_rows};
  // If stages were idle, the time between two results says nothing about the second step.
  took.seconds = step.keeps_up ? took.since_result : seconds(now - step.started) / stages_;
  began_ = now;
  last_result_ = now;
  return took;
}

void StepTimer::drop() {
  steps_.clear();
  last_result_.reset();
}

}  // namespace octavo
