// model_bench.h - measures a model's decode and prefill speed in a plain loop over its steps,
// without scheduler or text. Shows no MLX.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/cost_tables.h"
#include "bench/step_cost.h"

namespace octavo::bench {

struct ModelBenchOptions {
  std::optional<DType> dtype;  // default: the checkpoint's own
  std::vector<int> batch_sizes = {1, 8, 32};
  int context = 128;      // tokens of every sequence before the first decode step
  int output_len = 32;    // decode steps per run
  int prefill_len = 512;  // tokens of the timed prompt; 0: none
  int repeats = 5;        // runs of each
  bool costs = false;     // also measures what ModelBenchResult::costs has; needs two batch sizes
};

// Times of one kind of step over all repeats.
struct StepTimes {
  double median_seconds = 0;  // over all steps (decode) or over all prompts (prefill)
  // Of the median repeat: its tokens divided by its duration, as other engines report it.
  double tokens_per_second = 0;
  StepCost cost;  // of a step half-way through a run, or of a whole prompt
  // Share of the time during which none of our kernels ran.
  double outside_kernels = 0;
};

struct DecodeResult {
  int batch_size = 0;
  StepTimes times;
};

struct ModelBenchResult {
  ModelDescription model;
  int threads = 0;
  std::string isa;
  std::vector<DecodeResult> decode;  // one per batch size, in the given order
  std::optional<StepTimes> prefill;
  std::optional<MeasuredSteps> costs;  // medians
};

// Loads the checkpoint and measures. The calling thread runs the steps. Throws SetupError.
ModelBenchResult bench_model(const Checkpoint& checkpoint, const ModelBenchOptions& options,
                             const std::function<void(uint64_t done, uint64_t total)>& loading);

}  // namespace octavo::bench
