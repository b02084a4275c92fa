#include "engine/pipeline/pipeline_runner.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "engine/cluster/drop_steps.h"

namespace octavo {

void PipelineRunner::start(const Batch& batch) {
  OCTAVO_CHECK(!batch.waits_for_previous && batch.adapter_slots.empty());
  const StepMessage step{.number = next_step_, .batch = batch};
  cluster_.announce(step);
  ++next_step_;
  steps_.push_back(step.number);
  stage_.start(step, nullptr);
}

StepResult PipelineRunner::finish() {
  OCTAVO_CHECK(!steps_.empty());
  const uint64_t number = steps_.front();
  steps_.pop_front();
  const ResultMessage own = stage_.finish();
  ResultMessage last = cluster_.wait_result(number);
  if (own.error) throw std::runtime_error(fmt::format("rank 0: {}", *own.error));
  if (last.error) throw std::runtime_error(*last.error);
  return std::move(last.result);
}

void PipelineRunner::drop() {
  stage_.drop();
  steps_.clear();
  next_step_ = 0;
  drop_steps(cluster_);
}

}  // namespace octavo
