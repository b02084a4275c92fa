// pipeline_head.h - rank 0 of a model that is divided by layers. Engine thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "distributed/cluster.h"
#include "engine/cluster/cluster_head.h"
#include "engine/cluster/cluster_pages.h"
#include "engine/cluster/cluster_setup.h"
#include "engine/pipeline/pipeline_runner.h"
#include "engine/pipeline/plan_stages.h"

namespace octavo {

class PipelineHead : public ClusterHead {
 public:
  // Plans and tells the other ranks to load. `merged`: of --merge-adapter. The cluster and the model
  // must outlive this object. Throws SetupError.
  PipelineHead(Cluster& cluster, const ModelDescription& model, const EngineOptions& options,
               const std::string& digest, const std::optional<Sha256Digest>& merged);

  const MemoryPlan& memory() const override { return plan_.stages.front().memory; }
  StageRange layers() const override { return plan_.stages.front().layers; }
  const CachePlan& cache() const override { return plan_.cache; }
  const ModelDescription& part() const override { return model_; }
  CachePlan whole_cache() const override { return plan_.cache; }
  std::string table() const override { return plan_.table(); }
  RowsSender* next_stage() override { return sender_.get(); }
  void connect(Runner& runner, KvStore& kv) override;
  StepRunner& runner() override { return *runner_; }
  PageMemory& pages() override { return *pages_; }

 private:
  Cluster& cluster_;
  const ModelDescription& model_;
  PipelinePlan plan_;
  size_t row_bytes_;
  std::unique_ptr<TensorLinks> links_;
  std::unique_ptr<RowsSender> sender_;
  std::unique_ptr<StageRunner> stage_;
  std::unique_ptr<PipelineRunner> runner_;
  std::unique_ptr<ClusterPages> pages_;
};

}  // namespace octavo
