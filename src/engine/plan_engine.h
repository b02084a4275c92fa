// plan_engine.h - plans memory, cache, speculation and scheduling before anything is loaded. No
// MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

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
  int step_rows = 0;  // most tokens it reads in one step
  int sequences = 0;  // most sequences that draft at once
  uint64_t step_bytes = 0;

  uint64_t pages_bytes() const {
    return static_cast<uint64_t>(page_count) * cache.bytes_per_page_id();
  }
  uint64_t bytes() const { return model.weights_bytes + pages_bytes() + step_bytes; }
};

// Options below are those of options_for().

// describe_model with the dtype and the pooling of the options. Throws SetupError.
ModelDescription describe_model(const Checkpoint& checkpoint, const EngineOptions& options);
// plan_engine_memory uses the limits of the selected device. Both throw SetupError that names the
// flag to change.
CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options,
                            std::span<const int> cuts = {});
MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options);
// What plan_memory() is asked for: for the whole model, or for one stage of it. Checks the options.
MemoryRequest memory_request(const ModelDescription& model, const EngineOptions& options,
                             std::optional<StageRange> stage = std::nullopt);
// The sequences that the pool holds without --kv-memory, and their length.
struct UsualLoad {
  int sequences;
  int tokens;
};
UsualLoad usual_load(const ModelDescription& model, const EngineOptions& options);

// The requested speculation. Without a request there is none on models with recurrent state, which
// needs memory for drafts. Throws SetupError if the model does not support the request.
SpeculativeConfig plan_speculation(const ModelDescription& model, const EngineOptions& options);

// Empty if the engine uses no draft model. Throws SetupError if the draft model does not fit
// `model`.
std::optional<DraftPlan> plan_draft(const ModelDescription& model, const EngineOptions& options);

// Rows of the largest step that is queued while another step still runs.
int rows_at_once(const ModelDescription& model, const EngineOptions& options);
// Memory of such a step.
uint64_t bytes_ahead(const ModelDescription& model, const EngineOptions& options,
                     std::optional<StageRange> stage = std::nullopt);
SchedulerOptions plan_scheduler(const ModelDescription& model, const EngineOptions& options,
                                const MemoryPlan& memory);

}  // namespace octavo
