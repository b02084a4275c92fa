// plan_stages.h - divides a model's layers and pages over the machines of a cluster. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/memory_plan.h"
#include "engine/engine_options.h"
#include "models/model_description.h"
#include "models/stage_range.h"

namespace octavo {

// One rank's part.
struct StagePlan {
  StageRange layers;
  MemoryPlan memory;  // page_count and max_model_len are the same on all ranks
};

struct PipelinePlan {
  std::vector<StagePlan> stages;  // by rank
  CachePlan cache;                // of the whole model, with a stage per rank

  int page_count() const { return stages.front().memory.page_count; }
  int max_model_len() const { return stages.front().memory.max_model_len; }
  // The first layers of ranks above 0.
  std::vector<int> cuts() const;
  // For printing, one row per rank.
  std::string table() const;
};

// `budgets`: memory that each rank may use; that of rank 0 is ignored and follows from the options.
// Layers are divided in proportion, counting their weights and their part of the pages, and all
// ranks have as many pages as the one with the least memory. Throws SetupError that says what to
// change if the model cannot be divided into so many stages, or does not fit.
PipelinePlan plan_stages(const ModelDescription& model, const EngineOptions& options,
                         std::span<const uint64_t> budgets);
// On `machines` like this one.
PipelinePlan plan_equal_stages(const ModelDescription& model, const EngineOptions& options,
                               int machines);

}  // namespace octavo
