// rope_scaling.h - the rotation speeds of a model's rope, with whatever stretching its config asks
// for. No MLX.
#pragma once

#include <vector>

#include "models/config.h"

namespace octavo {

struct RopePlan {
  std::vector<float> inverse_frequencies;  // one per rotated pair
  float magnitude = 1;                     // factor on the rotated dimensions (yarn)
  float score_scale = 1;  // yarn's mscale_all_dim, for families that put it on all scores

  bool operator==(const RopePlan&) const = default;
};

// Reads rope_theta and rope_scaling (or rope_parameters) of `config`: default, linear, llama3,
// yarn. `dims` is the number of rotated dimensions of a head.
RopePlan plan_rope(const Config& config, int dims);

}  // namespace octavo
