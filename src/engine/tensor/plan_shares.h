// plan_shares.h - the memory of ranks that divide the outputs of matrices. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/memory_plan.h"
#include "engine/engine_options.h"
#include "models/model_description.h"

namespace octavo {

struct TensorPlan {
  std::vector<MemoryPlan> ranks;  // page_count and max_model_len are the same on all
  CachePlan cache;                // of each rank

  int page_count() const { return ranks.front().page_count; }
  int max_model_len() const { return ranks.front().max_model_len; }
  // The same cache with the pages of all ranks.
  CachePlan whole_cache() const;
  // For printing, one row per rank.
  std::string table() const;
};

// The part of `model` that each of several ranks has, which is the same for all of them. `weights`:
// bytes of its weights. Throws SetupError if there are more ranks than heads.
ModelDescription part_of_rank(const ModelDescription& model, int ranks, uint64_t weights);

// `part`: of part_of_rank(). `budgets`: memory that each rank may use; that of rank 0 is ignored and
// follows from the options. All ranks have as many pages as the one with the least memory. Throws
// SetupError that says what to change if the part does not fit.
TensorPlan plan_shares(const ModelDescription& part, const EngineOptions& options,
                       std::span<const uint64_t> budgets);

}  // namespace octavo
