// tensor_runner.h - runs steps on all ranks that divide outputs: rank 0's StepRunner. Engine thread
// only.
#pragma once

#include <cstdint>
#include <deque>

#include "distributed/cluster.h"
#include "engine/runner.h"
#include "scheduler/step_runner.h"

namespace octavo {

class TensorRunner : public StepRunner {
 public:
  // All must outlive the runner.
  TensorRunner(Cluster& cluster, TensorLinks& links, Runner& runner)
      : cluster_(cluster), links_(links), runner_(runner) {}

  bool queues_at_once(const Batch& batch) const override { return runner_.queues_at_once(batch); }
  void start(const Batch& batch) override;
  // Throws the error of the first rank on which the step failed, or ClusterError.
  StepResult finish() override;
  // Does nothing on other ranks if the cluster has failed: then every later step fails too.
  void drop() override;

 private:
  Cluster& cluster_;
  TensorLinks& links_;
  Runner& runner_;
  uint64_t next_step_ = 0;
  std::deque<uint64_t> steps_;  // in flight, oldest first
};

}  // namespace octavo
