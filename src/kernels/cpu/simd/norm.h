// norm.h - RMS and layer norm of one row, and row preparation for the dot-product kernels. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/vec.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The norm of a row applied to each element: (x - mean) * factor * weight + bias.
struct RowNorm {
  float mean = 0;
  float factor = 1;
};

OCTAVO_INLINE Vec load_upto16(const void* base, DType dtype, int64_t index, int64_t left) {
  return left >= kLanes ? load_as(base, dtype, index) : load_part(base, dtype, index, left);
}

OCTAVO_INLINE RowNorm row_norm(const RowsJob& job, int64_t row) {
  if (job.norm == Norm::kNone) return {};
  const auto count = static_cast<float>(job.cols);
  RowNorm result;
  if (job.norm == Norm::kLayer) {
    Vec total = zero();
    for (int64_t k = 0; k < job.cols; k += kLanes)
      total = add(total, load_upto16(job.x, job.dtype, job.begin_of(row) + k, job.cols - k));
    result.mean = sum(total) / count;
  }
  Vec squares = zero();
  const Vec mean = set1(result.mean);
  for (int64_t k = 0; k < job.cols; k += kLanes) {
    const int64_t left = job.cols - k;
    Vec v = sub(load_upto16(job.x, job.dtype, job.begin_of(row) + k, left), mean);
    if (left < kLanes && job.norm == Norm::kLayer) {
      // Lanes past the row contain minus the mean here.
      alignas(64) float lanes[kLanes];
      store(lanes, v);
      for (int64_t i = left; i < kLanes; ++i) lanes[i] = 0;
      v = load(lanes);
    }
    squares = fma(v, v, squares);
  }
  result.factor = 1 / __builtin_sqrtf(sum(squares) / count + job.eps);
  return result;
}

// Elements [k, k + 16) of a normed row, not yet rounded; zeros past the row's end.
OCTAVO_INLINE Vec normed16(const RowsJob& job, int64_t row, RowNorm norm, int64_t k) {
  const int64_t left = job.cols - k;
  if (left <= 0) return zero();
  const Vec x = load_upto16(job.x, job.dtype, job.begin_of(row) + k, left);
  if (job.norm == Norm::kNone) return x;
  const int64_t part = job.parts == 1 ? 0 : row % job.parts;
  const Vec weight = load_upto16(job.norm_weight, job.norm_dtype, part * job.cols + k, left);
  const Vec y = mul(mul(sub(x, set1(norm.mean)), set1(norm.factor)), weight);
  if (job.norm_bias == nullptr) return y;
  return add(y, load_upto16(job.norm_bias, job.norm_dtype, k, left));
}

static void norm_rows(const RowsJob& job, void* out, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowNorm norm = row_norm(job, row);
    for (int64_t k = 0; k < job.cols; k += kLanes) {
      const Vec v = normed16(job, row, norm, k);
      const int64_t left = job.cols - k;
      if (left >= kLanes) {
        store_as(out, job.dtype, row * job.cols + k, v);
      } else {
        store_part(out, job.dtype, row * job.cols + k, left, v);
      }
    }
  }
}

// Inputs of a prepared row including trailing zeros: enough for every packed weight.
OCTAVO_INLINE int64_t prepared_cols(int64_t cols) {
  return (cols + kUnitCols - 1) / kUnitCols * kUnitCols;
}

// Plain rows [rows][prepared_cols] of float32.
static void prepare_rows_f32(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  const int64_t stride = prepared_cols(job.cols);
  auto* out = reinterpret_cast<float*>(job.prepared);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowNorm norm = row_norm(job, row);
    for (int64_t k = 0; k < stride; k += kLanes) {
      const Vec v = normed16(job, row, norm, k);
      store(out + row * stride + k, job.norm == Norm::kNone ? v : round_to(job.dtype, v));
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
