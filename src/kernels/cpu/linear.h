// linear.h (cpu) - y = x W^T + bias over raw rows.
#pragma once

#include "kernels/weight_format.h"

namespace octavo::cpu {

struct LinearArgs {
  const void* x = nullptr;  // [rows, weight.cols]
  DType x_dtype = DType::kFloat32;
  int64_t rows = 0;
  WeightView weight;
  const void* bias = nullptr;  // [weight.rows] or null
  DType bias_dtype = DType::kFloat32;
  void* out = nullptr;  // [rows, weight.rows]
  DType out_dtype = DType::kFloat32;
};

// Threads split the weight's rows; the sum over inputs has one order per weight, whatever `rows`
// is.
void linear(const LinearArgs& args);

}  // namespace octavo::cpu
