// rope.h - rotary position embedding, rotate-half form.
#pragma once

#include "kernels/rope_arrays.h"
#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// Rotates dimension i against i + R of every head by positions[t] * inverse_frequencies[i], i < R,
// and multiplies the rotated dimensions by `magnitude` (yarn). Dimensions from 2 R on do
// not change.
//   x:                   [T, heads, D], contiguous, 2 R <= D
//   positions:           [T] int32
//   inverse_frequencies: [R] float32
mx::array rope(const mx::array& x, const mx::array& positions, const mx::array& inverse_frequencies,
               float magnitude = 1, KernelPath path = KernelPath::kNative);

// The same by positions that may have several axes.
mx::array rope(const mx::array& x, const RopeArrays& by, float magnitude = 1,
               KernelPath path = KernelPath::kNative);

namespace reference {
mx::array rope(const mx::array& x, const RopeArrays& by, float magnitude);
}

}  // namespace octavo
