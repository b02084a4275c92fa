// pipeline_runner.h - runs steps on all machines of a cluster: rank 0's StepRunner. Engine thread
// only.
#pragma once

#include <cstdint>
#include <deque>

#include "distributed/cluster.h"
#include "engine/pipeline/stage_runner.h"
#include "scheduler/step_runner.h"

namespace octavo {

class PipelineRunner : public StepRunner {
 public:
  // Both must outlive the runner.
  PipelineRunner(Cluster& cluster, StageRunner& stage) : cluster_(cluster), stage_(stage) {}

  bool queues_at_once(const Batch& batch) const override { return stage_.queues_at_once(batch); }
  // The batch must not use tokens of the previous step.
  void start(const Batch& batch) override;
  // Throws the error of the first rank on which the step failed, or ClusterError.
  StepResult finish() override;
  // Does nothing on other ranks if the cluster has failed: then every later step fails too.
  void drop() override;

 private:
  Cluster& cluster_;
  StageRunner& stage_;
  uint64_t next_step_ = 0;
  std::deque<uint64_t> steps_;  // in flight, oldest first
};

}  // namespace octavo
