// tensor_head.h - rank 0 of a model whose matrices are divided by outputs. Engine thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/cluster/cluster_head.h"
#include "engine/cluster/cluster_pages.h"
#include "engine/tensor/plan_shares.h"
#include "engine/tensor/tensor_runner.h"

namespace octavo {

class TensorHead : public ClusterHead {
 public:
  // Plans and tells the other ranks to load. The cluster must outlive this object. Throws SetupError.
  TensorHead(Cluster& cluster, const Checkpoint& checkpoint, const ModelDescription& model,
             const EngineOptions& options, const std::string& digest);

  const MemoryPlan& memory() const override { return plan_.ranks.front(); }
  StageRange layers() const override { return whole_model(part_.plan); }
  const CachePlan& cache() const override { return plan_.cache; }
  const ModelDescription& part() const override { return part_; }
  CachePlan whole_cache() const override { return plan_.whole_cache(); }
  std::string table() const override { return plan_.table(); }
  LinkExchange* ranks() override { return exchange_.get(); }
  void connect(Runner& runner, KvStore& kv) override;
  StepRunner& runner() override { return *runner_; }
  PageMemory& pages() override { return *pages_; }

 private:
  Cluster& cluster_;
  ModelDescription part_;
  TensorPlan plan_;
  std::unique_ptr<TensorLinks> links_;
  std::unique_ptr<LinkExchange> exchange_;
  std::unique_ptr<TensorRunner> runner_;
  std::unique_ptr<ClusterPages> pages_;
};

}  // namespace octavo
