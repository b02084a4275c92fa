// absent_plan.h - the missing half of a layer that has only a mixer or only a feed-forward
// (Nemotron-H), as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "cache/cache_spec.h"

namespace octavo {

struct AbsentPlan {
  std::string describe() const { return ""; }
  uint64_t parameters(int) const { return 0; }
  uint64_t row_elements() const { return 0; }
  uint64_t widest_input(int) const { return 0; }
  CacheSpec cache_spec(DType, KvFormat) const { return NoCacheSpec{}; }
};

}  // namespace octavo
