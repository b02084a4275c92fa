// state_pages.h - the pages of a layer that keeps a state instead of keys and values.
#pragma once

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "kernels/types/state_geometry.h"

namespace octavo {

// Kernels read a sequence's state from its source pages and write it to its destination pages,
// which may be the same; otherwise the source is unchanged, so a snapshot needs no copy.
// table: [S, (1 + n) * geometry.columns] int32, sources first; a source of -1 is a state of zeros.
// The state after the last row is written to the first of the n sets of destinations. A sequence
// that lists a second set lists one for each of its rows, and the state after its i-th row is
// written to the i-th set, so that its last rows can be taken back; unused sets are -1.
struct StatePages {
  mx::array bytes;  // [pages, page bytes] uint8, from make_device_buffer
  StateGeometry geometry;
  KernelPath path = KernelPath::kNative;
};

}  // namespace octavo
