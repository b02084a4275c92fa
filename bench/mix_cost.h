// mix_cost.h - the least time a mix of requests can take: their steps replayed, each at the
// machine's limit. No MLX.
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
  double limit_seconds = 0;  // the sum over the steps; 0 when a limit is unknown
};

// All requests are there from the start. A step has a row for each sequence that decodes, then
// chunks of prompts as far as the rows go, first come, first served; a sequence that ends makes
// room in the next step. Pages never run out, and no prompts share a beginning.
MixCost mix_cost(const ModelDescription& model, const StepWeights& weights,
                 std::span<const MixRequest> requests, const MixOptions& options,
                 const StepLimits& machine);

}  // namespace octavo::bench
