// tensor_steps.h - the steps of a rank other than 0 when outputs are divided over ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "engine/cluster/worker_steps.h"
#include "engine/runner.h"

namespace octavo {

// All ranks exchange parts of every step that was announced, so every step is computed, even after a
// failure, which is the result of all steps until drop().
class TensorSteps : public WorkerSteps {
 public:
  // The runner has RunnerOptions::ranks, and must outlive this object.
  explicit TensorSteps(Runner& runner) : runner_(runner) {}

  void on_input(std::function<void()>) override {}
  void expect(const StepMessage&) override {}
  bool has_input() const override { return true; }
  bool queues_at_once(const Batch& batch) const override { return runner_.queues_at_once(batch); }
  // What it throws ends the cluster: the other ranks would wait for this one.
  void start(const StepMessage& step, bool is_dropped) override;
  // Throws LinkError.
  ResultMessage finish() override;
  void drop() override;
  size_t steps_in_flight() const override { return steps_.size(); }

 private:
  Runner& runner_;
  std::deque<uint64_t> steps_;  // in flight, oldest first
  std::optional<std::string> error_;
};

}  // namespace octavo
