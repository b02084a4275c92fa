// state_pages.h - the pages of a layer that keeps a state instead of keys and values.
#pragma once

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/state_geometry.h"

namespace octavo {

// Kernels read a sequence's state from its source pages and write it to its destination pages,
// which may be the same; otherwise the source is unchanged, so a snapshot needs no copy.
// table: [S, 2 * geometry.columns] int32, sources first; a source of -1 is a state of zeros
struct StatePages {
  mx::array bytes;  // [pages, page bytes] uint8, from make_device_buffer
  StateGeometry geometry;
  KernelPath path = KernelPath::kNative;
};

}  // namespace octavo
