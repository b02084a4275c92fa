// state_panels.h (simd) - what recurrences with a matrix per head share. The columns of a state, one
// per value dimension, are independent: a panel of a few vectors of columns processes all rows of a
// block while it is in the first-level cache. Every sum over the key dimension is sequential, so the
// split of rows into calls and blocks changes no bit. No MLX.
#pragma once

#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kStateRows = 64;  // of a block

// Vectors of columns that are stored together: the state is kept by panel, [k_dim][vectors * 16], on
// every set, because its pages may be read by another process. With a register per vector, those of
// a panel share the broadcast of an element of k and q: as many as keep their sums in registers and
// the panel in the cache.
OCTAVO_INLINE int64_t panel_vectors(int64_t k_dim) { return k_dim <= 160 ? 4 : 2; }

// Up to 16 heads of a row, for numbers per head.
struct HeadVector {
  int64_t row;
  int64_t first;  // head
  int64_t count;
  int64_t heads;  // of the row

  OCTAVO_INLINE Vec load(const void* base, DType dtype, int64_t index) const {
    return count == kLanes ? load_as(base, dtype, index) : load_part(base, dtype, index, count);
  }
  // base: [rows, heads]
  OCTAVO_INLINE void store(float* base, Vec v) const {
    store_part(base, DType::kFloat32, row * heads + first, count, v);
  }
};

template <typename Work>
OCTAVO_INLINE void each_head_vector(int64_t row_begin, int64_t row_end, int64_t heads,
                                    const Work& work) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t first = 0; first < heads; first += kLanes) {
      const int64_t left = heads - first;
      work(HeadVector{row, first, left < kLanes ? left : kLanes, heads});
    }
  }
}

OCTAVO_INLINE Vec step_of(Vec dt, Vec dt_bias) { return softplus(add(dt, dt_bias)); }
// The decay of a state in a step of this length.
OCTAVO_INLINE Vec decay_of(Vec a_log, Vec step) { return exp(sub(zero(), mul(exp(a_log), step))); }

OCTAVO_INLINE void prefetch_head(const void* base, DType dtype, int64_t index, int64_t dim) {
  const int64_t width = element_bytes(dtype);
  const auto* bytes = static_cast<const unsigned char*>(base) + index * width;
  for (int64_t at = 0; at < dim * width; at += 64) __builtin_prefetch(bytes + at, 0, 2);
}

// S = decay S + change k^T and y = S q in one pass over them, plus S k of the next row.
template <int N, int P, bool kNext>
OCTAVO_INLINE void update(const float* from, float* to, const float* k, const float* q,
                          const float* next_k, int64_t k_dim, Vec decay, const Vec (&change)[N],
                          Vec (&y)[N], Vec (&memory)[N]) {
  for (int n = 0; n < N; ++n) y[n] = memory[n] = zero();
  for (int64_t i = 0; i < k_dim; ++i) {
    const Vec ki = set1(k[i]);
    const Vec qi = set1(q[i]);
    const Vec next = kNext ? set1(next_k[i]) : zero();
    _Pragma("GCC unroll 4") for (int n = 0; n < N; ++n) {
      const int64_t at = (i * P + n) * kLanes;
      const Vec s = fma(change[n], ki, mul(load(from + at), decay));
      store(to + at, s);
      y[n] = fma(s, qi, y[n]);
      if constexpr (kNext) memory[n] = fma(s, next, memory[n]);
    }
  }
}

OCTAVO_INLINE void copy_vectors(const float* from, int64_t stride, float* to, int64_t to_stride,
                                int64_t count) {
  for (int64_t i = 0; i < count; ++i) store(to + i * to_stride, load(from + i * stride));
}

struct PanelShape {
  int64_t k_dim;
  int64_t v_dim;
  int64_t rows;    // of the block
  float* columns;  // [k_dim, 16] of scratch
};

// A panel of P vectors.
template <int P, typename Panel>
OCTAVO_INLINE void panel_of(const PanelShape& shape, int64_t column, const float* from, float* to,
                            const Panel& panel) {
  if constexpr (kRegs == 1 || P == 1) {
    panel.template operator()<P, P>(column, from, to);
  } else {
    constexpr int64_t kWorthCopying = 8;  // rows: lines far apart share few sets of the cache
    for (int n = 0; n < P; ++n, column += kLanes, from += kLanes, to += kLanes) {
      if (shape.rows < kWorthCopying) {
        panel.template operator()<1, P>(column, from, to);
        continue;
      }
      copy_vectors(from, P * kLanes, shape.columns, kLanes, shape.k_dim);
      panel.template operator()<1, 1>(column, shape.columns, shape.columns);
      copy_vectors(shape.columns, kLanes, to, P * kLanes, shape.k_dim);
    }
  }
}

// Runs panel.operator()<N, P>(column, from, to) for all columns of a head's state: N vectors of a
// panel of P, from the given column on, through the rows of a block.
template <typename Panel>
OCTAVO_INLINE void state_panels(const PanelShape& shape, const float* from, float* to,
                                const Panel& panel) {
  const int64_t widest = panel_vectors(shape.k_dim);
  for (int64_t column = 0; column < shape.v_dim;) {
    const int64_t left = (shape.v_dim - column) / kLanes;
    const int64_t vectors = left < widest ? left : widest;
    const int64_t at = column * shape.k_dim;
    switch (vectors) {
      case 1:
        panel_of<1>(shape, column, from + at, to + at, panel);
        break;
      case 2:
        panel_of<2>(shape, column, from + at, to + at, panel);
        break;
      case 3:
        panel_of<3>(shape, column, from + at, to + at, panel);
        break;
      default:
        panel_of<4>(shape, column, from + at, to + at, panel);
    }
    column += vectors * kLanes;
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
