// model_bench.h - a model's decode and prefill speed in a plain loop over its steps: no scheduler,
// no text. Shows no MLX.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/step_cost.h"

namespace octavo::bench {

struct ModelBenchOptions {
  std::optional<DType> dtype;  // default: the checkpoint's own
  std::vector<int> batch_sizes = {1, 8, 32};
  int context = 128;      // tokens of every sequence before the first decode step
  int output_len = 32;    // decode steps of a run
  int prefill_len = 512;  // tokens of the prompt that is timed; 0: none
  int repeats = 5;        // runs of each
};

// Times of one kind of step over all repeats.
struct StepTimes {
  double median_seconds = 0;  // of all single steps (decode) or of all prompts (prefill)
  // Of the median repeat: its tokens over its whole span, as other engines report it.
  double tokens_per_second = 0;
  StepCost cost;  // of a step half-way through a run; of a whole prompt
  // Share of the time that none of our kernels ran.
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
  std::vector<DecodeResult> decode;  // by batch size, as asked
  std::optional<StepTimes> prefill;
};

// Loads the checkpoint and measures. The calling thread runs the steps. Throws SetupError.
ModelBenchResult bench_model(const Checkpoint& checkpoint, const ModelBenchOptions& options,
                             const std::function<void(uint64_t done, uint64_t total)>& loading);

}  // namespace octavo::bench
