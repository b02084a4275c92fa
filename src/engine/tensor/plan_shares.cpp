#include "engine/tensor/plan_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "base/widen.h"
#include "engine/cluster/rank_request.h"
#include "engine/plan_engine.h"

namespace octavo {

CachePlan TensorPlan::whole_cache() const {
  CachePlan whole = cache;
  whole.slots *= static_cast<int>(ranks.size());
  return whole;
}

std::string TensorPlan::table() const {
  std::string text = fmt::format("  {:<6}{:>12}{:>12}{:>12}{:>12}\n", "rank", "budget", "weights",
                                 "pages", "left");
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const MemoryPlan& memory = ranks[rank];
    const uint64_t total = memory.total_bytes();
    text +=
        fmt::format("  {:<6}{:>12}{:>12}{:>12}{:>12}\n", rank, format_bytes(memory.budget_bytes),
                    format_bytes(memory.weights_bytes), format_bytes(memory.kv_bytes),
                    format_bytes(memory.budget_bytes > total ? memory.budget_bytes - total : 0));
  }
  return text + fmt::format("  {} pages, context {}\n", page_count(), max_model_len());
}

ModelDescription part_of_rank(const ModelDescription& model, int ranks, uint64_t weights) {
  ModelDescription part = model;
  part.plan = model.plan.of_rank(ranks);
  part.ranks = ranks;
  part.weights_bytes = weights;
  part.weights = {};
  return part;
}

TensorPlan plan_shares(const ModelDescription& part, const EngineOptions& options,
                       std::span<const uint64_t> budgets) {
  TensorPlan plan{.ranks = {}, .cache = plan_engine_cache(part, options)};
  MemoryRequest request = memory_request(part, options);
  // --kv-memory is that of all ranks.
  if (request.kv_bytes) *request.kv_bytes /= budgets.size();
  int pages = std::numeric_limits<int>::max();
  int context = pages;
  for (size_t rank = 0; rank < budgets.size(); ++rank) {
    try {
      plan.ranks.push_back(plan_memory(request_on_rank(request, rank, budgets[rank]), plan.cache));
    } catch (const SetupError& error) {
      throw SetupError(fmt::format("rank {}: {}", rank, error.what()));
    }
    pages = std::min(pages, plan.ranks.back().page_count);
    context = std::min(context, plan.ranks.back().max_model_len);
  }
  for (MemoryPlan& own : plan.ranks) {
    own.page_count = pages;
    own.max_model_len = context;
    own.kv_bytes = widen(pages) * plan.cache.bytes_per_page_id();
  }
  return plan;
}

}  // namespace octavo
