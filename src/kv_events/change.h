// change.h - a change of the prefix cache that waits to be sent. No MLX.
#pragma once

#include <cstdint>
#include <variant>

#include "cache/prefix_observer.h"

namespace octavo::kv_events {

struct Stored {
  CachedBlock block;
  CacheMedium medium;
};
struct Removed {
  int group;
  uint64_t hash;
  CacheMedium medium;
};
struct Cleared {};

using Change = std::variant<Stored, Removed, Cleared>;

}  // namespace octavo::kv_events
