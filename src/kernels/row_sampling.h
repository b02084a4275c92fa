// row_sampling.h - how one row's token is drawn. No MLX.
#pragma once

#include <cstdint>

namespace octavo {

// Applied in vLLM's order: temperature, min_p, top_k, top_p, draw. (seed, choice, position) alone
// decide the draw.
struct RowSampling {
  float temperature = 0;  // 0: the likeliest token, lowest id on a tie
  float top_p = 1;
  float min_p = 0;
  int32_t top_k = 0;  // 0: all
  uint64_t seed = 0;
  uint32_t choice = 0;
  uint32_t position = 0;  // of the token being drawn
};

}  // namespace octavo
