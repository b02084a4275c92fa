// cache_spec.h - what one layer keeps in the cache. No MLX.
#pragma once

#include <variant>

#include "cache/softmax_spec.h"
#include "cache/state_spec.h"

namespace octavo {

// A layer that reads the pages of an earlier layer and has no pages itself.
struct SharedSpec {
  int layer = 0;

  bool operator==(const SharedSpec&) const = default;
};

// A layer that keeps nothing.
struct NoCacheSpec {
  bool operator==(const NoCacheSpec&) const = default;
};

using CacheSpec = std::variant<SoftmaxSpec, StateSpec, SharedSpec, NoCacheSpec>;

}  // namespace octavo
