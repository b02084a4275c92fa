#include "engine/pipeline/pipeline_head.h"

#include "base/error.h"
#include "engine/plan_engine.h"
#include "kernels/arithmetic.h"

namespace octavo {
namespace {

PipelinePlan plan_of_cluster(const Cluster& cluster, const ModelDescription& model,
                             const EngineOptions& options) {
  std::vector<uint64_t> budgets = {0};
  for (const WorkerHello& worker : cluster.workers()) budgets.push_back(worker.memory_bytes);
  return plan_stages(model, options, budgets);
}

StageSetup setup_of(const PipelinePlan& plan, const ModelDescription& model,
                    const EngineOptions& options) {
  const SpeculativeConfig speculation = plan_speculation(model, options);
  const bool drafts = speculation.method != SpeculativeMethod::kNone;
  return {.cuts = plan.cuts(),
          .page_count = plan.page_count(),
          .max_model_len = plan.max_model_len(),
          .dtype = model.dtype,
          .kv_format = options.kv_format,
          .block_tokens = options.block_tokens,
          .max_num_seqs = options.max_num_seqs,
          .max_num_batched_tokens = options.max_num_batched_tokens,
          .predicts = model.plan.mtp.has_value(),
          .most_drafts = drafts ? speculation.num_speculative_tokens : 0,
          .pooling = options.pooling,
          .model_digest = {},
          .arithmetic = arithmetic_name(),
          .merged = {}};
}

// A rank that cannot start ends its links too; its own error says more.
std::unique_ptr<TensorLinks> connect_links(Cluster& cluster) {
  try {
    return cluster.make_links();
  } catch (const LinkError& error) {
    cluster.wait_ready();
    throw SetupError(error.what());
  }
}

}  // namespace

PipelineHead::PipelineHead(Cluster& cluster, const ModelDescription& model,
                           const EngineOptions& options, const std::string& digest,
                           const std::optional<Sha256Digest>& merged)
    : cluster_(cluster),
      plan_(plan_of_cluster(cluster, model, options)),
      row_bytes_(passed_row_bytes(model.plan, model.dtype)) {
  StageSetup setup = setup_of(plan_, model, options);
  setup.model_digest = digest;
  if (merged) setup.merged = hex_of(*merged);
  cluster_.set_limits(step_limits(plan_.cache, setup, model.plan.vocab));
  for (int rank = 1; rank < cluster_.size(); ++rank) cluster_.send_setup(rank, setup.to_json());
  links_ = connect_links(cluster_);
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
