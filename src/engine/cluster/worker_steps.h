// worker_steps.h - how a rank other than 0 computes the steps that rank 0 announces. Engine thread
// only.
#pragma once

#include <cstddef>
#include <functional>

#include "distributed/step_message.h"

namespace octavo {

class WorkerSteps {
 public:
  virtual ~WorkerSteps() = default;

  // Called by any thread when has_input() may have changed. Set before the first expect().
  virtual void on_input(std::function<void()> call) = 0;
  // The step was announced, so its input will come.
  virtual void expect(const StepMessage& step) = 0;
  // Whether start() of the oldest step that was not started would not wait.
  virtual bool has_input() const = 0;
  virtual bool queues_at_once(const Batch& batch) const = 0;
  // In the order of expect(). `is_dropped`: the result is not needed. Throws if no other rank can
  // continue.
  virtual void start(const StepMessage& step, bool is_dropped) = 0;
  // Waits for the oldest step.
  virtual ResultMessage finish() = 0;
  // Drops all steps. The next step is number 0.
  virtual void drop() = 0;
  virtual size_t steps_in_flight() const = 0;
};

}  // namespace octavo
