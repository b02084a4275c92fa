// cluster_head.h - rank 0's part of a cluster: plans, sets up the other ranks, and runs steps on all of
// them. Engine thread only.
#pragma once

#include <string>

#include "cache/cache_plan.h"
#include "cache/memory_plan.h"
#include "cache/page_memory.h"
#include "engine/pipeline/rows_link.h"
#include "engine/runner.h"
#include "models/kv_store.h"
#include "models/model_description.h"
#include "scheduler/step_runner.h"

namespace octavo {

class ClusterHead {
 public:
  virtual ~ClusterHead() = default;

  // Of this rank.
  virtual const MemoryPlan& memory() const = 0;
  virtual StageRange layers() const = 0;
  virtual const CachePlan& cache() const = 0;
  // What this rank holds and computes, for memory plans.
  virtual const ModelDescription& part() const = 0;
  // Of the pages of all ranks together, for the disk tier.
  virtual CachePlan whole_cache() const = 0;
  // For printing, one row per rank.
  virtual std::string table() const = 0;

  // For RunnerOptions and the model; null if there are none.
  virtual RowsSender* next_stage() { return nullptr; }
  virtual LinkExchange* ranks() { return nullptr; }
  // Waits until the other ranks have loaded. Both must outlive this object.
  virtual void connect(Runner& runner, KvStore& kv) = 0;

  // After connect().
  virtual StepRunner& runner() = 0;
  virtual PageMemory& pages() = 0;
};

}  // namespace octavo
