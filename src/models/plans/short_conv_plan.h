// short_conv_plan.h - a gated short convolution in place of attention (LFM2) as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "cache/cache_spec.h"

namespace octavo {

// b, c, x = projections of the input; output = projection of c * conv(b * x), channel by channel.
struct ShortConvPlan {
  int channels = 0;
  int kernel = 3;     // taps
  bool bias = false;  // on projections and convolution

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
  CacheSpec cache_spec(DType dtype, KvFormat format) const;
};

}  // namespace octavo
