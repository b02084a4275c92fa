// pipeline_collector.h (metal) - finds the pipelines that launches need, without running them.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "kernels/metal/launch.h"

namespace octavo::metal {

// While it exists, the launches that its thread describes are checked and collected instead of run,
// so that nothing is written to pages or other arrays. One per thread at a time.
class PipelineCollector {
 public:
  PipelineCollector();
  ~PipelineCollector();
  PipelineCollector(const PipelineCollector&) = delete;
  PipelineCollector& operator=(const PipelineCollector&) = delete;

  // Of this thread; null if there is none.
  static PipelineCollector* current();

  void add(const Launch& launch);
  // Each once, in the order of their first launches.
  std::span<const PipelineKey> pipelines() const { return pipelines_; }

 private:
  std::vector<PipelineKey> pipelines_;
  std::unordered_set<PipelineKey, PipelineKeyHash> known_;
};

}  // namespace octavo::metal
