// linear_dot.h - products in float32 by vector dot products: lanes run along the inputs, every (row,
// output) has one accumulator of 16 lanes, summed over the inputs in order and folded once at the
// end. This does not depend on how many rows and outputs share a pass. No MLX.
#pragma once

#include "kernels/cpu/simd/decode_codes.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Rows multiplied with a strip before the next strip: they stay in the cache meanwhile.
inline constexpr int64_t kDotRows = 32;

// Outputs and rows of one pass: as many accumulators as fit in registers.
inline constexpr int kDotBlock = kRegs == 1 ? 4 : 2;

template <int Rows>
OCTAVO_INLINE void dot_block(const float* w, int64_t w_stride, const float* x, int64_t x_stride,
                             int64_t cols, float (*out)[kStripRows], int n) {
  Vec acc[Rows][kDotBlock];
  for (int m = 0; m < Rows; ++m)
    for (int i = 0; i < kDotBlock; ++i) acc[m][i] = zero();
  for (int64_t k = 0; k < cols; k += kLanes) {
#pragma GCC unroll 4
    for (int m = 0; m < Rows; ++m)
#pragma GCC unroll 4
      for (int i = 0; i < kDotBlock; ++i)
        acc[m][i] = fma(load(w + (n + i) * w_stride + k), load(x + m * x_stride + k), acc[m][i]);
  }
  for (int m = 0; m < Rows; ++m)
    for (int i = 0; i < kDotBlock; ++i) out[m][n + i] = sum(acc[m][i]);
}

// out[m][n] for up to kDotBlock rows and the 16 outputs of a strip, w: [16][cols].
OCTAVO_INLINE void dot_strip(const float* w, int64_t cols, const float* x, int64_t x_stride,
                             int64_t rows, float (*out)[kStripRows]) {
  for (int n = 0; n < kStripRows; n += kDotBlock) {
    switch (rows) {
      case 1:
        dot_block<1>(w, cols, x, x_stride, cols, out, n);
        break;
      case 2:
        dot_block<2>(w, cols, x, x_stride, cols, out, n);
        break;
      case 3:
        dot_block<3>(w, cols, x, x_stride, cols, out, n);
        break;
      default:
        dot_block<4>(w, cols, x, x_stride, cols, out, n);
        break;
    }
  }
}

// Numbers of a decoded strip; of both matrices if gated.
static int64_t dot_panel(const LinearJob& job) {
  const int64_t up = job.up.data != nullptr ? job.up.layout.padded_cols : 0;
  return kStripRows * (job.weight.layout.padded_cols + up);
}

// Decoded strips to keep: all of a claim if the rows form several blocks.
static int64_t dot_panels(const LinearJob& job, int64_t strips) {
  return job.rows > kDotRows ? strips : 1;
}

static int64_t dot_scratch(const LinearJob& job, int64_t strips) {
  return dot_panels(job, strips) * dot_panel(job) * static_cast<int64_t>(sizeof(float));
}

// The strip's numbers: in place, or in `panel`, where they are decoded unless `decoded`.
static const float* strip_numbers(const PackedView& weight, int64_t strip, bool decoded,
                                  float* panel) {
  if (weight.layout.bits == 0 && weight.layout.dtype == DType::kFloat32)
    return reinterpret_cast<const float*>(weight.strip(strip));
  if (!decoded) decode_strip_f32(weight, strip, panel);
  return panel;
}

static void dot_rows(const LinearJob& job, int64_t strip, const float* w, const float* up,
                     int64_t row_begin, int64_t row_end) {
  const int64_t x_stride = prepared_cols(job.weight.layout.cols);
  const auto* x = reinterpret_cast<const float*>(job.prepared);
  alignas(64) float sums[4][kStripRows];
  alignas(64) float up_sums[4][kStripRows] = {};
  for (int64_t m = row_begin; m < row_end; m += kDotBlock) {
    const int64_t rows = row_end - m < kDotBlock ? row_end - m : kDotBlock;
    dot_strip(w, job.weight.layout.padded_cols, x + m * x_stride, x_stride, rows, sums);
    if (up != nullptr)
      dot_strip(up, job.up.layout.padded_cols, x + m * x_stride, x_stride, rows, up_sums);
    Vec results[kDotBlock];
    Vec up_results[kDotBlock];
    for (int64_t i = 0; i < rows; ++i) {
      results[i] = load(sums[i]);
      up_results[i] = load(up_sums[i]);
    }
    finish_rows(job, strip, m, rows, {results, up != nullptr ? up_results : nullptr});
  }
}

static void linear_dot(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                       std::byte* scratch) {
  const int64_t w_numbers = kStripRows * job.weight.layout.padded_cols;
  auto* panels = reinterpret_cast<float*>(scratch);
  for (int64_t m = 0; m < job.rows; m += kDotRows) {
    const int64_t end = m + kDotRows < job.rows ? m + kDotRows : job.rows;
    for (int64_t strip = strip_begin; strip < strip_end; ++strip) {
      const int64_t kept = (strip - strip_begin) % dot_panels(job, strip_end - strip_begin);
      float* panel = panels + kept * dot_panel(job);
      const float* w = strip_numbers(job.weight, strip, m > 0, panel);
      const float* up =
          job.up.data != nullptr ? strip_numbers(job.up, strip, m > 0, panel + w_numbers) : nullptr;
      dot_rows(job, strip, w, up, m, end);
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
