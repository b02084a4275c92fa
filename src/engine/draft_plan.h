// draft_plan.h - what a draft model will take, known before it is loaded. No MLX.
#pragma once

#include <cstdint>
#include <memory>

#include "cache/cache_plan.h"
#include "models/model_description.h"

namespace octavo {

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

}  // namespace octavo
