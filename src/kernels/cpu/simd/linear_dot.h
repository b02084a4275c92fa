// linear_dot.h - products by vector dot products: lanes run along the inputs, every (row, output)
// has one accumulator of 16 lanes, summed over the inputs in order and folded once at the end. This
// does not depend on how many rows and outputs share a pass. No MLX.
#pragma once

#include "kernels/cpu/simd/decode_codes.h"
#include "kernels/cpu/simd/finish.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Rows multiplied with a strip before the next strip: they stay in the cache meanwhile.
inline constexpr int64_t kDotRows = 32;

struct DotF32 {
  using Element = float;
  static constexpr int64_t kStep = 16;
  static OCTAVO_INLINE Vec step(Vec acc, const float* w, const float* x) {
    return fma(load(w), load(x), acc);
  }
  // Steps of a strip's row `n`: w + n * row_stride + t * step_stride.
  static int64_t row_stride(const PackedLayout& layout) { return layout.padded_cols; }
  static constexpr int64_t kStepStride = 16;
  static bool needs_decoding(const PackedLayout& layout) {
    return layout.bits != 0 || layout.dtype != DType::kFloat32;
  }
  static void decode(const PackedView& weight, int64_t strip, float* out) {
    decode_strip_f32(weight, strip, out);
  }
};

#ifdef OCTAVO_SIMD_BF16
struct DotBF16 {
  using Element = uint16_t;
  static constexpr int64_t kStep = 32;
  static OCTAVO_INLINE Vec step(Vec acc, const uint16_t* w, const uint16_t* x) {
    const auto a = reinterpret_cast<__m512bh>(_mm512_loadu_si512(w));
    const auto b = reinterpret_cast<__m512bh>(_mm512_loadu_si512(x));
    return {{_mm512_dpbf16_ps(acc.r[0], a, b)}};
  }
  static int64_t row_stride(const PackedLayout&) { return 32; }
  static constexpr int64_t kStepStride = 32 * kStripRows;
  static bool needs_decoding(const PackedLayout&) { return false; }
  static void decode(const PackedView&, int64_t, uint16_t*) {}
};
#endif

// Outputs and rows of one pass: as many accumulators as fit in registers.
inline constexpr int kDotBlock = kRegs == 1 ? 4 : 2;

template <typename Dot, int Rows>
OCTAVO_INLINE void dot_block(const typename Dot::Element* w, int64_t row_stride,
                             const typename Dot::Element* x, int64_t x_stride, int64_t steps,
                             float (*out)[kStripRows], int n) {
  Vec acc[Rows][kDotBlock];
  for (int m = 0; m < Rows; ++m)
    for (int i = 0; i < kDotBlock; ++i) acc[m][i] = zero();
  for (int64_t t = 0; t < steps; ++t) {
#pragma GCC unroll 4
    for (int m = 0; m < Rows; ++m)
#pragma GCC unroll 4
      for (int i = 0; i < kDotBlock; ++i)
        acc[m][i] = Dot::step(acc[m][i], w + (n + i) * row_stride + t * Dot::kStepStride,
                              x + m * x_stride + t * Dot::kStep);
  }
  for (int m = 0; m < Rows; ++m)
    for (int i = 0; i < kDotBlock; ++i) out[m][n + i] = sum(acc[m][i]);
}

// out[m][n] for up to kDotBlock rows and the 16 outputs of a strip.
template <typename Dot>
OCTAVO_INLINE void dot_strip(const PackedLayout& layout, const typename Dot::Element* w,
                             const typename Dot::Element* x, int64_t x_stride, int64_t rows,
                             float (*out)[kStripRows]) {
  const int64_t steps = layout.padded_cols / Dot::kStep;
  const int64_t stride = Dot::row_stride(layout);
  for (int n = 0; n < kStripRows; n += kDotBlock) {
    switch (rows) {
      case 1:
        dot_block<Dot, 1>(w, stride, x, x_stride, steps, out, n);
        break;
      case 2:
        dot_block<Dot, 2>(w, stride, x, x_stride, steps, out, n);
        break;
      case 3:
        dot_block<Dot, 3>(w, stride, x, x_stride, steps, out, n);
        break;
      default:
        dot_block<Dot, 4>(w, stride, x, x_stride, steps, out, n);
        break;
    }
  }
}

// Elements of a decoded strip; of both matrices if gated.
static int64_t dot_panel(const LinearJob& job) {
  const int64_t up = job.up.data != nullptr ? job.up.layout.padded_cols : 0;
  return kStripRows * (job.weight.layout.padded_cols + up);
}

// Decoded strips to keep: all of a claim if the rows form several blocks.
static int64_t dot_panels(const LinearJob& job, int64_t strips) {
  return job.rows > kDotRows ? strips : 1;
}

template <typename Dot>
static int64_t dot_scratch(const LinearJob& job, int64_t strips) {
  return dot_panels(job, strips) * dot_panel(job) *
         static_cast<int64_t>(sizeof(typename Dot::Element));
}

// The strip's numbers: in place, or in `panel`, where they are decoded unless `decoded`.
template <typename Dot>
static const typename Dot::Element* strip_numbers(const PackedView& weight, int64_t strip,
                                                  bool decoded, typename Dot::Element* panel) {
  if (!Dot::needs_decoding(weight.layout))
    return reinterpret_cast<const typename Dot::Element*>(weight.strip(strip));
  if (!decoded) Dot::decode(weight, strip, panel);
  return panel;
}

template <typename Dot>
static void dot_rows(const LinearJob& job, int64_t strip, const typename Dot::Element* w,
                     const typename Dot::Element* up, int64_t row_begin, int64_t row_end) {
  const int64_t x_stride = prepared_cols(job.weight.layout.cols);
  const auto* x = reinterpret_cast<const typename Dot::Element*>(job.prepared);
  alignas(64) float sums[4][kStripRows];
  alignas(64) float up_sums[4][kStripRows] = {};
  for (int64_t m = row_begin; m < row_end; m += kDotBlock) {
    const int64_t rows = row_end - m < kDotBlock ? row_end - m : kDotBlock;
    dot_strip<Dot>(job.weight.layout, w, x + m * x_stride, x_stride, rows, sums);
    if (up != nullptr) dot_strip<Dot>(job.up.layout, up, x + m * x_stride, x_stride, rows, up_sums);
    for (int64_t i = 0; i < rows; ++i)
      finish_row(job, m + i, strip, load(sums[i]), load(up_sums[i]));
  }
}

template <typename Dot>
static void linear_dot(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                       std::byte* scratch) {
  const int64_t w_elements = kStripRows * job.weight.layout.padded_cols;
  auto* panels = reinterpret_cast<typename Dot::Element*>(scratch);
  for (int64_t m = 0; m < job.rows; m += kDotRows) {
    const int64_t end = m + kDotRows < job.rows ? m + kDotRows : job.rows;
    for (int64_t strip = strip_begin; strip < strip_end; ++strip) {
      const int64_t kept = (strip - strip_begin) % dot_panels(job, strip_end - strip_begin);
      auto* panel = panels + kept * dot_panel(job);
      const auto* w = strip_numbers<Dot>(job.weight, strip, m > 0, panel);
      const auto* up = job.up.data != nullptr
                           ? strip_numbers<Dot>(job.up, strip, m > 0, panel + w_elements)
                           : nullptr;
      dot_rows<Dot>(job, strip, w, up, m, end);
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
