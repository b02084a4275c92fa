// step_runner.h - runs steps in order: the interface between scheduling and computing. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/update.h"

namespace octavo {

// Contiguous rows of floats.
struct HiddenRows {
  int width = 0;
  std::vector<float> values = {};

  std::span<const float> rows(size_t first, size_t count) const {
    const auto each = static_cast<size_t>(width);
    return std::span(values).subspan(first * each, count * each);
  }
};

struct StepResult {
  std::vector<TokenId> tokens = {};                 // one per Batch::sampling
  std::vector<TokenLogprobs> logprobs = {};         // one per token; empty if no row requests them
  std::vector<uint64_t> hashes = {};                // one per token; empty if no row requests them
  std::vector<TokenLogprobs> prompt_logprobs = {};  // one per Batch::prompt_logprobs
  HiddenRows hidden = {};                           // one per Batch::hidden_rows
  // One per token: the model's prediction of the token after it; empty without Batch::next_tokens.
  std::vector<TokenId> predicted = {};
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // True if start() does not wait for a step of this size to run. Always with several pipeline
  // stages.
  virtual bool queues_at_once(const Batch& batch) const = 0;
  // Queues the step after those that are running; its batch may use tokens drawn by the previous
  // step, but not with several pipeline stages. May wait for the step to run unless
  // queues_at_once(); if its rows have masks, the previous step must then be committed first.
  virtual void start(const Batch& batch) = 0;
  // Waits for the oldest step. Throws if it, or a step after it, failed.
  virtual StepResult finish() = 0;
  // After start() or finish() has thrown: waits for running steps and drops all of them, and all
  // images. Nothing they wrote may be used.
  virtual void drop() = 0;
};

}  // namespace octavo
