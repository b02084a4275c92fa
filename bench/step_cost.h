// step_cost.h - the minimum bytes and operations of a model step, and the time this machine needs
// for them. No MLX.
#pragma once

#include <cstdint>
#include <optional>

#include "models/model_description.h"

namespace octavo::bench {

// The machine's limits; 0: unknown.
struct StepLimits {
  double read_gbps = 0;      // from memory, all cores, 10^9 bytes per second
  double matrix_tflops = 0;  // of the compute type, all cores, 10^12 per second
};

struct StepCost {
  uint64_t weight_bytes = 0;  // each matrix it uses, once, as stored in the file
  uint64_t kv_bytes = 0;      // K and V of all contexts read once, new ones written
  uint64_t flops = 0;

  uint64_t bytes() const { return weight_bytes + kv_bytes; }
  // The roofline: the longer of memory and compute time. 0 if a limit is unknown.
  double limit_seconds(const StepLimits& machine) const;

  StepCost& operator+=(const StepCost& other);
};

// Bytes of the weights that steps read: all except an embedding table that is only looked up.
struct StepWeights {
  uint64_t always = 0;
  uint64_t experts = 0;             // all of them
  std::optional<MoePlan> moe = {};  // how tokens select them

  // Expected bytes read by a step of `tokens` tokens, each selecting experts at random.
  uint64_t read_by(uint64_t tokens) const;
};
StepWeights step_weights(const Checkpoint& checkpoint, const DecoderPlan& plan);

// One new token for each of `sequences`, each with `context` tokens in the cache after the step.
StepCost decode_cost(const ModelDescription& model, uint64_t weight_bytes, int sequences,
                     int context, KvFormat kv_format = KvFormat::kPlain);

// `rows` tokens of one sequence after `start` cached ones; with_logits: adds the last row's logits.
StepCost prefill_cost(const ModelDescription& model, uint64_t weight_bytes, int start, int rows,
                      bool with_logits, KvFormat kv_format = KvFormat::kPlain);

}  // namespace octavo::bench
