// finish.h - the steps after a product: bias, gate, scale, residual, cap, rounding. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The result of a gated pair.
OCTAVO_INLINE Vec gate_up(Activation activation, Vec gate, Vec up) {
  switch (activation) {  // without a default, so that the compiler reports a missing activation
    case Activation::kBoundedSilu: {
      const Vec limit = set1(7);
      const Vec g = min(limit, gate);
      const Vec u = max(set1(-7), min(limit, up));
      const Vec active = div(g, add(set1(1), exp(mul(set1(-1.702f), g))));
      return mul(active, add(u, set1(1)));
    }
    case Activation::kGeluTanh:
      return mul(gelu_tanh(gate), up);
    case Activation::kSilu:
      break;
  }
  return mul(silu(gate), up);
}

// The optional steps of ungated products.
OCTAVO_INLINE Vec scaled(const LinearJob& job, Vec v) {
  return job.scale == 1 ? v : mul(v, set1(job.scale));
}
OCTAVO_INLINE Vec capped(const LinearJob& job, Vec v) {
  if (job.soft_cap <= 0) return v;
  return mul(set1(job.soft_cap), tanh(mul(v, set1(1 / job.soft_cap))));
}

template <bool Whole>
OCTAVO_INLINE void finish_lanes(const LinearJob& job, int64_t row, int64_t n, int64_t count, Vec v,
                                Vec up) {
  const auto fetch = [&](const void* base, DType dtype, int64_t index) OCTAVO_INLINE_LAMBDA {
    return Whole ? load_as(base, dtype, index) : load_part(base, dtype, index, count);
  };
  if (job.bias != nullptr) v = add(v, fetch(job.bias, job.bias_dtype, n));
  if (job.up.data != nullptr) {
    if (job.up_bias != nullptr) up = add(up, fetch(job.up_bias, job.bias_dtype, n));
    v = gate_up(job.activation, v, up);
  } else {
    v = scaled(job, v);
  }
  const int64_t index = row * job.out_stride + job.out_first + n;
  if (job.residual != nullptr) {
    v = add(fetch(job.residual, job.out_dtype, index), v);
  } else {
    v = capped(job, v);
  }
  if constexpr (Whole) {
    store_as(job.out, job.out_dtype, index, v);
  } else {
    store_part(job.out, job.out_dtype, index, count, v);
  }
}

// The 16 outputs of one strip for one row: `v` from the weight, `up` from its gated partner.
OCTAVO_INLINE void finish_row(const LinearJob& job, int64_t row, int64_t strip, Vec v, Vec up) {
  const int64_t n = strip * kStripRows;
  const int64_t count = job.weight.layout.rows - n;
  if (count >= kStripRows) {
    finish_lanes<true>(job, row, n, kStripRows, v, up);
  } else {
    finish_lanes<false>(job, row, n, count, v, up);
  }
}

static void gated(const void* gate, const void* up, void* out, DType dtype, Activation activation,
                  int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store_as(out, dtype, i, gate_up(activation, load_as(gate, dtype, i), load_as(up, dtype, i)));
  }
  if (i < count) {
    const Vec g = load_part(gate, dtype, i, count - i);
    const Vec u = load_part(up, dtype, i, count - i);
    store_part(out, dtype, i, count - i, gate_up(activation, g, u));
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
