// plan_engine.h - what an engine will need and how it will run, decided before anything is loaded.
// No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cache/cache_plan.h"
#include "cache/memory_plan.h"
#include "engine/engine_options.h"
#include "engine/speculative_config.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"
#include "scheduler/scheduler.h"

namespace octavo {

// The memory and the limits of a draft model.
struct DraftPlan {
  std::shared_ptr<const Checkpoint> checkpoint;
  ModelDescription model;
  CachePlan cache;
  int page_count = 0;
  int step_rows = 0;  // it reads this many tokens at a time to catch up
  int sequences = 0;  // that draft at a time, at most
  uint64_t step_bytes = 0;

  uint64_t pages_bytes() const {
    return static_cast<uint64_t>(page_count) * cache.bytes_per_page_id();
  }
  uint64_t bytes() const { return model.weights_bytes + pages_bytes() + step_bytes; }
};

// describe_model as the options ask. Throws SetupError.
ModelDescription describe_model(const Checkpoint& checkpoint, const EngineOptions& options);
// The two plans, before anything is loaded; memory on the device in use. Both throw SetupError
// naming the flag to change.
CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options);
MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options);

// How the engine will speculate: as asked, or not at all where the model cannot and nobody asked.
// Throws SetupError when what was asked for cannot be had.
SpeculativeConfig plan_speculation(const ModelDescription& model, const EngineOptions& options);

// Empty if the engine uses no draft model. Throws SetupError if the draft model does not fit
// `model`.
std::optional<DraftPlan> plan_draft(const ModelDescription& model, const EngineOptions& options);

// Rows of the largest step that is queued while another step still runs.
int rows_at_once(const ModelDescription& model, const EngineOptions& options);
// Memory of such a step.
uint64_t bytes_ahead(const ModelDescription& model, const EngineOptions& options);
SchedulerOptions plan_scheduler(const ModelDescription& model, const EngineOptions& options,
                                const MemoryPlan& memory);

}  // namespace octavo
