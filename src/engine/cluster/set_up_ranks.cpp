#include "engine/cluster/set_up_ranks.h"

#include <string>

#include "base/error.h"
#include "engine/plan_engine.h"
#include "kernels/arithmetic.h"

namespace octavo {
namespace {

// A rank that cannot start ends its links too; its own error says more.
std::unique_ptr<TensorLinks> connect_links(Cluster& cluster, bool all_pairs) {
  try {
    return cluster.make_links(all_pairs);
  } catch (const LinkError& error) {
    cluster.wait_ready();
    throw SetupError(error.what());
  }
}

}  // namespace

ClusterSetup setup_of(const ModelDescription& model, const EngineOptions& options,
                      const MemoryPlan& memory) {
  const SpeculativeConfig speculation = plan_speculation(model, options);
  const bool drafts = speculation.method != SpeculativeMethod::kNone;
  return {.tensor = options.tensor_parallel,
          .cuts = {},
          .page_count = memory.page_count,
          .max_model_len = memory.max_model_len,
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

std::unique_ptr<TensorLinks> set_up_ranks(Cluster& cluster, const ClusterSetup& setup,
                                          const CachePlan& cache, const DecoderPlan& model) {
  StepLimits limits = step_limits(cache, setup, model.vocab);
  limits.hidden = model.hidden;
  cluster.set_limits(limits);
  const std::string json = setup.to_json();
  for (int rank = 1; rank < cluster.size(); ++rank) cluster.send_setup(rank, json);
  return connect_links(cluster, setup.tensor);
}

}  // namespace octavo
