// warm_up.h - compiles the Metal kernels of a model's steps before the first request. Engine thread
// only.
#pragma once

#include <vector>

#include "engine/runner.h"
#include "kernels/metal/pipeline_key.h"

namespace octavo {

// The largest step.
struct WarmUpLimits {
  int rows = 1;
  int sequences = 1;
  int context = 1;             // tokens of a sequence
  bool predicts = false;       // the model takes Batch::next_tokens
  bool draws = true;           // false: rows are returned instead of sampled
  bool whole_prompts = false;  // an encoder, which has all rows of a sequence in one step
  bool has_adapters = false;   // rows may have LoRA adapters
};

// Batches that together reach every choice between kernels that a step within the limits can make.
// They name pages without holding them, so they must not run on a device.
std::vector<Batch> warm_up_batches(const CachePlan& cache, const WarmUpLimits& limits);

// The pipelines of these batches. The runner describes their launches, and none of them is run. No
// step may be in flight.
std::vector<metal::PipelineKey> find_pipelines(Runner& runner, const std::vector<Batch>& batches);

// Compiles the pipelines of every step, with a line in the log per second. Does nothing on the CPU.
void warm_up(Runner& runner, const CachePlan& cache, const WarmUpLimits& limits);

}  // namespace octavo
