#include "engine/tensor/tensor_head.h"

#include <vector>

#include "base/error.h"
#include "engine/cluster/set_up_ranks.h"
#include "kernels/runtime/device.h"
#include "models/tensor_check.h"

namespace octavo {
namespace {

TensorPlan plan_of_cluster(const Cluster& cluster, const ModelDescription& part,
                           const EngineOptions& options) {
  std::vector<uint64_t> budgets = {0};
  for (const WorkerHello& worker : cluster.workers()) budgets.push_back(worker.memory_bytes);
  return plan_shares(part, options, budgets);
}

ModelDescription part_of(const Checkpoint& checkpoint, const ModelDescription& model,
                         const EngineOptions& options, int ranks) {
  if (!options.merge_adapter.empty())
    throw SetupError(
        "--merge-adapter: is not supported with --tensor-parallel-size; use "
        "--pipeline-parallel-size, or merge the adapter into the model's files");
  ModelDescription part = part_of_rank(model, ranks, 0);  // checks the heads
  part.weights_bytes = share_bytes(checkpoint, model, {.rank = 0, .ranks = ranks});
  return part;
}

}  // namespace

TensorHead::TensorHead(Cluster& cluster, const Checkpoint& checkpoint,
                       const ModelDescription& model, const EngineOptions& options,
                       const std::string& digest)
    : cluster_(cluster),
      part_(part_of(checkpoint, model, options, cluster.size())),
      plan_(plan_of_cluster(cluster, part_, options)) {
  ClusterSetup setup = setup_of(model, options, memory());
  setup.model_digest = digest;
  links_ = set_up_ranks(cluster_, setup, plan_.cache, model.plan);
  exchange_ = std::make_unique<LinkExchange>(*links_);
}

void TensorHead::connect(Runner& runner, KvStore& kv) {
  cluster_.wait_ready();
  runner_ = std::make_unique<TensorRunner>(cluster_, *links_, runner);
  pages_ = std::make_unique<ClusterPages>(
      kv, cluster_, std::vector<size_t>(plan_.ranks.size(), plan_.cache.bytes_per_page_id()));
}

}  // namespace octavo
