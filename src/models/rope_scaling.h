// rope_scaling.h - the rope frequencies of a model, with the scaling of its config. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"

namespace octavo {

struct RopePlan {
  std::vector<float> inverse_frequencies;  // one per rotated pair
  float magnitude = 1;                     // factor on the rotated dimensions (yarn)
  float score_scale = 1;  // yarn's mscale_all_dim, for families that apply it to all scores
  // By pair: 0 turns with the position in time, 1 in height, 2 in width (M-RoPE). Empty: all positions
  // of a token are equal.
  std::vector<int32_t> axes = {};

  bool operator==(const RopePlan&) const = default;
};

// Reads rope_theta and rope_scaling (or rope_parameters) of `config`: default, linear, llama3,
// yarn, longrope, proportional. `dims` is the number of rotated dimensions of a head.
RopePlan plan_rope(const Config& config, int dims);

// The rope of one layer type ("full_attention", "sliding_attention") in models with several: from
// rope_parameters if it has an entry for the type, otherwise with the base `theta` and `scaling`.
struct RopeFallback {
  double theta = 10000;
  std::optional<Config> scaling = {};
};
RopePlan plan_rope_of(const Config& config, const std::string& kind, int dims,
                      const RopeFallback& fallback);

}  // namespace octavo
