// head_linear.h - one product per head, each with its own matrix.
#pragma once

#include "kernels/runtime/kernel_path.h"
#include "kernels/weights/weight.h"

namespace octavo {

// y[t, h] = W[h] x[t, h]. A row has the same bits as in linear().
//   x:      [T, heads, weight.cols], contiguous
//   weight: [heads * outputs, cols], the heads' matrices stacked; outputs is a multiple of 16
//   returns [T, heads, outputs] of x's dtype
mx::array head_linear(const mx::array& x, const Weight& weight,
                      KernelPath path = KernelPath::kNative);

// Each head's matrix [rows / heads, cols], transposed: [heads * cols, rows / heads], dense in
// `dtype`. Quantised weights are decoded, because their groups run along the other axis.
Weight transposed_heads(const Weight& weight, int heads, DType dtype);

namespace reference {
mx::array head_linear(const mx::array& x, const Weight& weight);
}

}  // namespace octavo
