// stage_steps.h - the steps of one stage of a pipeline, whose rows come from the stage before.
#pragma once

#include <functional>
#include <utility>

#include "engine/cluster/worker_steps.h"
#include "engine/pipeline/rows_link.h"
#include "engine/pipeline/stage_runner.h"

namespace octavo {

// Rows are received while the step before runs.
class StageSteps : public WorkerSteps {
 public:
  // All must outlive this object.
  StageSteps(TensorLinks& links, StageRunner& stage, const DecoderModel& model);

  void on_input(std::function<void()> call) override { on_input_ = std::move(call); }
  void expect(const StepMessage& step) override;
  bool has_input() const override { return receiver_.has_arrived(); }
  bool queues_at_once(const Batch& batch) const override { return stage_.queues_at_once(batch); }
  void start(const StepMessage& step, bool is_dropped) override;
  ResultMessage finish() override { return stage_.finish(); }
  void drop() override { stage_.drop(); }
  size_t steps_in_flight() const override { return stage_.steps_in_flight(); }

 private:
  StageRunner& stage_;
  const DecoderModel& model_;
  std::function<void()> on_input_;
  RowsReceiver receiver_;
};

}  // namespace octavo
