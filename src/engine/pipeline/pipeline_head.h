// pipeline_head.h - rank 0's part of a cluster: plans the stages, sets up the other ranks, and runs
// steps on all of them. Engine thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "distributed/cluster.h"
#include "engine/pipeline/cluster_pages.h"
#include "engine/pipeline/pipeline_runner.h"
#include "engine/pipeline/plan_stages.h"
#include "engine/pipeline/stage_setup.h"

namespace octavo {

class PipelineHead {
 public:
  // Plans and tells the other ranks to load. `merged`: of --merge-adapter. The cluster must outlive
  // this object. Throws SetupError.
  PipelineHead(Cluster& cluster, const ModelDescription& model, const EngineOptions& options,
               const std::string& digest, const std::optional<Sha256Digest>& merged);

  const PipelinePlan& plan() const { return plan_; }
  // The next stage, for RunnerOptions.
  RowsSender& next_stage() { return *sender_; }
  // Waits until the other ranks have loaded. Both must outlive this object.
  void connect(Runner& runner, KvStore& kv);

  // After connect().
  StepRunner& runner() { return *runner_; }
  PageMemory& pages() { return *pages_; }

 private:
  Cluster& cluster_;
  PipelinePlan plan_;
  size_t row_bytes_;
  std::unique_ptr<TensorLinks> links_;
  std::unique_ptr<RowsSender> sender_;
  std::unique_ptr<StageRunner> stage_;
  std::unique_ptr<PipelineRunner> runner_;
  std::unique_ptr<ClusterPages> pages_;
};

}  // namespace octavo
