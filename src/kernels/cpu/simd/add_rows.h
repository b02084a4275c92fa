// add_rows.h - (x + scale * norm(y)) * out_scale, row by row. No MLX.
#pragma once

#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static void add_rows(const AddRowsJob& job, int64_t row_begin, int64_t row_end) {
  const RowsJob& y = job.y;
  const Vec scale = set1(job.scale);
  const Vec out_scale = set1(job.out_scale);
  const Vec bound = set1(65504);  // float16's largest
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowNorm norm = row_norm(y, row);
    for (int64_t k = 0; k < y.cols; k += kLanes) {
      const int64_t left = y.cols - k;
      const int64_t index = row * y.cols + k;
      const Vec x = load_upto16(job.x, y.dtype, index, left);
      Vec v = mul(fma(normed16(y, row, norm, k), scale, x), out_scale);
      if (y.dtype == DType::kFloat16) v = max(sub(zero(), bound), min(bound, v));
      if (left >= kLanes) {
        store_as(job.out, y.dtype, index, v);
      } else {
        store_part(job.out, y.dtype, index, left, v);
      }
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
