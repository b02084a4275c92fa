// stage_runner.h - this machine's part of each step. Engine thread only.
//
// A failure becomes the result of the step, and of all later ones until drop(). The next stage always
// gets rows, so that it does not wait: zeros, if they could not be computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "distributed/step_message.h"
#include "engine/pipeline/rows_link.h"
#include "engine/runner.h"

namespace octavo {

class StageRunner {
 public:
  // `next`: the runner's RunnerOptions::next_stage; null: the stage draws. `row_bytes`: of one row
  // between stages. All must outlive this object.
  StageRunner(Runner& runner, RowsSender* next, size_t row_bytes);

  bool queues_at_once(const Batch& batch) const { return runner_.queues_at_once(batch); }
  // `input`: as in Runner::start_stage().
  void start(const StepMessage& step, const Embedded* input);
  // In place of start(): the step's result has this error.
  void skip(const StepMessage& step, const std::string& error);
  // Waits for the oldest step.
  ResultMessage finish();
  // Waits for running steps and drops all of them. The next step is number 0.
  void drop();

  size_t steps_in_flight() const { return steps_.size(); }

 private:
  struct Step {
    uint64_t number;
    int rows;
  };
  void fail(const std::string& error);
  void send_zeros(const Step& step);

  Runner& runner_;
  RowsSender* next_;
  size_t row_bytes_;
  std::deque<Step> steps_;  // in flight, oldest first
  std::optional<std::string> error_;
};

}  // namespace octavo
