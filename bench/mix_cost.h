// mix_cost.h - the minimum time for a mix of requests: replays the steps, each at the machine's
// limit. No MLX.
#pragma once

#include <cstdint>
#include <span>

#include "bench/step_cost.h"

namespace octavo::bench {

struct MixRequest {
  int prompt_tokens = 0;
  int output_tokens = 0;
};

struct MixOptions {
  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  KvFormat kv_format = KvFormat::kPlain;
};

struct MixCost {
  uint64_t steps = 0;
  uint64_t rows = 0;
  StepCost total;
  double limit_seconds = 0;  // the sum over the steps; 0 if a limit is unknown
};

// All requests arrive at the start. A step has one row per decoding sequence, then prompt chunks up
// to max_num_batched_tokens, first come, first served. A finished sequence frees its slot for the
// next step. Assumes unlimited pages and no shared prefixes.
MixCost mix_cost(const ModelDescription& model, const StepWeights& weights,
                 std::span<const MixRequest> requests, const MixOptions& options,
                 const StepLimits& machine);

}  // namespace octavo::bench
