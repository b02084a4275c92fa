// row_tiles.h (metal) - grids of the row kernels.
#pragma once

#include "kernels/metal/launch.h"
#include "kernels/metal/row_params.h"

namespace octavo::metal {

inline constexpr int kLanes = 32;  // of a simdgroup

// Threadgroups for `count` items, `each` per group.
inline uint32_t groups_of(int count, int each) {
  return static_cast<uint32_t>((count + each - 1) / each);
}

// The grid of row_params.h over an output [..., D].
inline Launch& over_row_tiles(Launch& launch, const mx::array& out) {
  const int cols = out.shape(-1);
  return launch.grid(
      {groups_of(cols, kRowColumns), static_cast<uint32_t>(out.size() / static_cast<size_t>(cols))},
      {kTileThreads});
}

}  // namespace octavo::metal
