#include "engine/pipeline/pipeline_head.h"

#include "engine/cluster/set_up_ranks.h"

namespace octavo {
namespace {

PipelinePlan plan_of_cluster(const Cluster& cluster, const ModelDescription& model,
                             const EngineOptions& options) {
  std::vector<uint64_t> budgets = {0};
  for (const WorkerHello& worker : cluster.workers()) budgets.push_back(worker.memory_bytes);
  return plan_stages(model, options, budgets);
}

}  // namespace

PipelineHead::PipelineHead(Cluster& cluster, const ModelDescription& model,
                           const EngineOptions& options, const std::string& digest,
                           const std::optional<Sha256Digest>& merged)
    : cluster_(cluster),
      model_(model),
      plan_(plan_of_cluster(cluster, model, options)),
      row_bytes_(passed_row_bytes(model.plan, model.dtype)) {
  ClusterSetup setup = setup_of(model, options, memory());
  setup.cuts = plan_.cuts();
  setup.model_digest = digest;
  if (merged) setup.merged = hex_of(*merged);
  links_ = set_up_ranks(cluster_, setup, plan_.cache, model.plan);
  sender_ = std::make_unique<RowsSender>(*links_, 1);
}

void PipelineHead::connect(Runner& runner, KvStore& kv) {
  cluster_.wait_ready();
  stage_ = std::make_unique<StageRunner>(runner, sender_.get(), row_bytes_);
  runner_ = std::make_unique<PipelineRunner>(cluster_, *stage_);
  std::vector<size_t> bytes;
  for (size_t rank = 0; rank < plan_.stages.size(); ++rank)
    bytes.push_back(plan_.cache.of_stage(rank).bytes_per_page_id());
  pages_ = std::make_unique<ClusterPages>(kv, cluster_, std::move(bytes));
}

}  // namespace octavo
