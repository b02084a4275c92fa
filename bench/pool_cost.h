// pool_cost.h - what a loop of the compute pool costs besides its work. No MLX.
#pragma once

#include <vector>

namespace octavo::bench {

struct PoolCost {
  int threads = 1;
  double loop_seconds = 0;   // of a loop with one piece per thread, without the time of a piece
  double claim_seconds = 0;  // of a thread, for one more piece
};

// For 1, 2, 4, ... and `most` threads; each cost is the median of `passes` passes.
std::vector<PoolCost> measure_pool(int most, int passes);

}  // namespace octavo::bench
