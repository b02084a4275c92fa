// head_linear.h (cpu) - one product per head with packed weights over raw memory. No MLX.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::cpu {

// out[t, h] = W[h] x[t, h]. Heads of a token are adjacent; strides are elements from one head to
// the next.
struct HeadLinearArgs {
  const void* x = nullptr;
  DType dtype = DType::kFloat32;  // of x and of the output
  int64_t rows = 0;               // tokens
  int64_t heads = 0;
  int64_t x_stride = 0;  // >= weight cols: the first numbers of a head are used
  // The heads' matrices stacked, each with a multiple of kStripRows rows.
  PackedView weight = {};
  void* out = nullptr;
  int64_t out_stride = 0;  // >= outputs of a head
};

// The summation order is linear()'s: it does not depend on the number of rows.
void head_linear(const HeadLinearArgs& args);

}  // namespace octavo::cpu
