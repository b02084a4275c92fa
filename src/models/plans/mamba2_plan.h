// mamba2_plan.h - a Mamba-2 layer (Granite 4, Nemotron-H) as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "cache/cache_spec.h"

namespace octavo {

struct Mamba2Plan {
  int heads = 0;
  int head_dim = 0;
  int groups = 1;  // of b and c; head h uses group h / (heads / groups)
  int state_dim = 0;
  int conv_kernel = 4;     // taps of the causal convolution over x, b and c
  bool conv_bias = false;  // on the convolution
  bool bias = false;       // on the projections
  int norm_groups = 1;     // parts of the gated output that are normalised separately

  int values() const { return heads * head_dim; }
  int conv_channels() const { return values() + 2 * groups * state_dim; }

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
};

}  // namespace octavo
