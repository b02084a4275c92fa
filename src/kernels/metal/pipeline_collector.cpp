#include "kernels/metal/pipeline_collector.h"

#include "base/error.h"

namespace octavo::metal {
namespace {

// MLX describes the launches of a step on the thread that evaluates it.
thread_local PipelineCollector* collector_of_thread = nullptr;

}  // namespace

PipelineCollector::PipelineCollector() {
  OCTAVO_CHECK(collector_of_thread == nullptr);
  collector_of_thread = this;
}
PipelineCollector::~PipelineCollector() { collector_of_thread = nullptr; }

PipelineCollector* PipelineCollector::current() { return collector_of_thread; }

void PipelineCollector::add(const Launch& launch) {
  launch.check();
  if (known_.insert(launch.key()).second) pipelines_.push_back(launch.key());
}

}  // namespace octavo::metal
