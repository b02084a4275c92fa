// step_runner.h - runs steps one behind the other: the seam between what is decided and what is
// computed. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/update.h"

namespace octavo {

// Rows of floats, one behind the other.
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
  std::vector<TokenLogprobs> logprobs = {};         // one per token, or none when no row asked
  std::vector<uint64_t> hashes = {};                // one per token, or none when no row asked
  std::vector<TokenLogprobs> prompt_logprobs = {};  // one per Batch::prompt_logprobs
  HiddenRows hidden = {};                           // one per Batch::hidden_rows
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Whether start() returns long before a step of this size has run.
  virtual bool queues_at_once(const Batch& batch) const = 0;
  // Queues the step behind those that are running; its batch may take tokens of the one before. May
  // wait for the step itself unless it is queued at once: if its rows have masks, the one before is
  // committed first.
  virtual void start(const Batch& batch) = 0;
  // Waits for the oldest step. Throws when it, or the one behind it, could not be computed.
  virtual StepResult finish() = 0;
  // After a throw of either: waits for what still runs and drops all steps; nothing they wrote may
  // be trusted.
  virtual void drop() = 0;
};

}  // namespace octavo
