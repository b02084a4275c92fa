// step_cost.h - what a step of a model must move and compute at the least, and how long this
// machine needs for it. No MLX.
#pragma once

#include <cstdint>
#include <optional>

#include "models/model_description.h"

namespace octavo::bench {

// What this machine can do; 0: not known.
struct StepLimits {
  double read_gbps = 0;      // from memory, all cores, 10^9 bytes per second
  double matrix_tflops = 0;  // of the compute type, all cores, 10^12 per second
};

struct StepCost {
  uint64_t weight_bytes = 0;  // every matrix it meets once, as the file stores it
  uint64_t kv_bytes = 0;      // keys and values of all contexts read once, new ones written
  uint64_t flops = 0;

  uint64_t bytes() const { return weight_bytes + kv_bytes; }
  // The roofline: the longer of moving the bytes and doing the sums. 0 when a limit is unknown.
  double limit_seconds(const StepLimits& machine) const;

  StepCost& operator+=(const StepCost& other);
};

// Bytes of a model's weights that steps read: all but an embedding table that is looked up and no
// more.
struct StepWeights {
  uint64_t always = 0;
  uint64_t experts = 0;             // all of them
  std::optional<MoePlan> moe = {};  // how tokens pick them

  // What a step of so many tokens is expected to read, each picking experts by chance.
  uint64_t read_by(uint64_t tokens) const;
};
StepWeights step_weights(const Checkpoint& checkpoint, const DecoderPlan& plan);

// One new token for each of `sequences`, each with `context` tokens in the cache when the step
// ends.
StepCost decode_cost(const ModelDescription& model, uint64_t weight_bytes, int sequences,
                     int context, KvFormat kv_format = KvFormat::kPlain);

// `rows` tokens of one sequence behind `start` cached ones; the last row's logits if `with_logits`.
StepCost prefill_cost(const ModelDescription& model, uint64_t weight_bytes, int start, int rows,
                      bool with_logits, KvFormat kv_format = KvFormat::kPlain);

}  // namespace octavo::bench
