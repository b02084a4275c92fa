// finish.h - the steps after a product: adapters, bias, gate, scale, residual, cap, rounding. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/lora.h"
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
    case Activation::kGelu:
      return mul(gelu(gate), up);
    case Activation::kGeluTanh:
      return mul(gelu_tanh(gate), up);
    case Activation::kRelu:
      return mul(if_less(gate, zero(), zero(), gate), up);
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

// Sums of adjacent strips: [strip][rows], `stride` apart. Of a gated pair, `ups` are the other half's.
struct StripSums {
  Vec* sums;  // adapters are added in place
  Vec* ups;   // null unless gated
  int64_t strips = 1;
  int64_t stride = 0;
};

// Rows of whole strips, with all options resolved before the loop. A row's strips are adjacent in
// memory, so they are written one after the other.
template <bool Gated, bool Residual, typename Out>
OCTAVO_INLINE void finish_block(const LinearJob& job, int64_t strip, int64_t first, int64_t rows,
                                const StripSums& from) {
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t i = 0; i < from.strips; ++i) {
      const int64_t n = (strip + i) * kStripRows;
      const int64_t at = (first + m) * job.out_stride + job.out_first + n;
      Vec v = from.sums[i * from.stride + m];
      if (job.bias != nullptr) v = add(v, load_as(job.bias, job.bias_dtype, n));
      if constexpr (Gated) {
        Vec up = from.ups[i * from.stride + m];
        if (job.up_bias != nullptr) up = add(up, load_as(job.up_bias, job.bias_dtype, n));
        v = gate_up(job.activation, v, up);
      } else {
        v = scaled(job, v);
      }
      if constexpr (!Gated && !Residual) v = capped(job, v);
      if constexpr (sizeof(Out) == 4) {
        if constexpr (Residual) v = add(load(static_cast<const float*>(job.residual) + at), v);
        store(static_cast<float*>(job.out) + at, v);
      } else {
        if constexpr (Residual)
          v = add(load_bf16(static_cast<const uint16_t*>(job.residual) + at), v);
        store_bf16(static_cast<uint16_t*>(job.out) + at, v);
      }
    }
  }
}

template <bool Gated, bool Residual>
OCTAVO_INLINE void finish_strips(const LinearJob& job, int64_t strip, int64_t first, int64_t rows,
                                 const StripSums& from) {
  const bool whole = job.weight.layout.rows >= (strip + from.strips) * kStripRows;
  if (whole && job.out_dtype == DType::kBFloat16)
    return finish_block<Gated, Residual, uint16_t>(job, strip, first, rows, from);
  if (whole && job.out_dtype == DType::kFloat32)
    return finish_block<Gated, Residual, float>(job, strip, first, rows, from);
  for (int64_t i = 0; i < from.strips; ++i) {
    for (int64_t m = 0; m < rows; ++m) {
      const int64_t at = i * from.stride + m;
      finish_row(job, first + m, strip + i, from.sums[at], Gated ? from.ups[at] : zero());
    }
  }
}

// Rows [first, first + rows) of strips from `strip` on. Not inlined: products have many forms, and
// this takes long to compile.
static __attribute__((noinline)) void finish_rows(const LinearJob& job, int64_t strip,
                                                  int64_t first, int64_t rows,
                                                  const StripSums& from) {
  for (int64_t i = 0; i < from.strips; ++i) {
    if (job.lora != nullptr)
      add_lora(*job.lora, strip + i, first, rows, from.sums + i * from.stride);
    if (job.up_lora != nullptr)
      add_lora(*job.up_lora, strip + i, first, rows, from.ups + i * from.stride);
  }
  const bool is_gated = from.ups != nullptr;
  if (is_gated && job.residual != nullptr) {
    finish_strips<true, true>(job, strip, first, rows, from);
  } else if (is_gated) {
    finish_strips<true, false>(job, strip, first, rows, from);
  } else if (job.residual != nullptr) {
    finish_strips<false, true>(job, strip, first, rows, from);
  } else {
    finish_strips<false, false>(job, strip, first, rows, from);
  }
}

static void ungated(const void* x, void* out, DType dtype, Activation activation, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    if (left >= kLanes) {
      store_as(out, dtype, i, gate_up(activation, load_as(x, dtype, i), set1(1)));
    } else {
      store_part(out, dtype, i, left, gate_up(activation, load_part(x, dtype, i, left), set1(1)));
    }
  }
}

static void gated(const void* gate, const void* up, void* out, DType dtype, Activation activation,
                  int64_t count) {
  if (up == nullptr) return ungated(gate, out, dtype, activation, count);
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
