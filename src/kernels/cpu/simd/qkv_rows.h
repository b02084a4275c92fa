// qkv_rows.h - norm and rotation of heads, and writing them to pages. One head at a time, so rows
// are independent. No MLX.
#pragma once

#include "kernels/cpu/qkv_job.h"
#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Rounds a padded row to `dtype`, as storing it would.
OCTAVO_INLINE void round_row(float* row, int64_t dim, DType dtype) {
  if (dtype == DType::kFloat32) return;
  for (int64_t d = 0; d < dim; d += kLanes) store(row + d, round_to(dtype, load(row + d)));
}

// 1 / sqrt(mean(row^2) + eps) of a padded row.
OCTAVO_INLINE float norm_factor(const float* row, int64_t dim, float eps) {
  Vec squares = zero();
  for (int64_t d = 0; d < dim; d += kLanes) squares = fma(load(row + d), load(row + d), squares);
  return 1 / __builtin_sqrtf(sum(squares) / static_cast<float>(dim) + eps);
}

// The same for `count` numbers in memory.
OCTAVO_INLINE float norm_factor_of(const void* from, DType dtype, int64_t index, int64_t count,
                                   float eps) {
  Vec squares = zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const Vec v = load_upto16(from, dtype, index + i, count - i);
    squares = fma(v, v, squares);
  }
  return 1 / __builtin_sqrtf(sum(squares) / static_cast<float>(count) + eps);
}

// row * factor * weight, the weight starting at element `first`, or no weight; zeros after the
// row's end stay zeros.
OCTAVO_INLINE void scale_head(float* row, int64_t dim, float factor, const void* weight,
                              DType dtype, int64_t first) {
  const Vec scale = set1(factor);
  for (int64_t d = 0; d < dim; d += kLanes) {
    Vec v = mul(load(row + d), scale);
    if (weight != nullptr) v = mul(v, load_upto16(weight, dtype, first + d, dim - d));
    store(row + d, v);
  }
}

// Dimension i against i + pairs.
OCTAVO_INLINE void rotate_head(float* row, int64_t pairs, const float* cosine, const float* sine) {
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int64_t count = pairs - i < kLanes ? pairs - i : kLanes;
    const bool whole = count == kLanes;
    auto get = [&](const float* from) {
      return whole ? load(from) : load_part(from, DType::kFloat32, 0, count);
    };
    auto put = [&](float* to, Vec v) {
      if (whole) return store(to, v);
      store_part(to, DType::kFloat32, 0, count, v);
    };
    const Vec a = get(row + i);
    const Vec b = get(row + pairs + i);
    const Vec c = get(cosine + i);
    const Vec s = get(sine + i);
    put(row + i, sub(mul(a, c), mul(b, s)));
    put(row + pairs + i, add(mul(b, c), mul(a, s)));
  }
}

OCTAVO_INLINE void narrow(const float* row, DType dtype, int64_t dim, void* out, int64_t index) {
  int64_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) store_as(out, dtype, index + d, load(row + d));
  if (d < dim) store_part(out, dtype, index + d, dim - d, load(row + d));
}

// The row as int8 and its scale: the largest number becomes 127.
OCTAVO_INLINE float quantise(const float* row, int64_t dim, int8_t* out) {
  Vec largest = zero();
  for (int64_t d = 0; d < dim; d += kLanes) {
    const Vec x = load(row + d);
    largest = max(max(x, sub(zero(), x)), largest);
  }
  const float top = max_lane(largest);
  const Vec scale = set1(top > 0 ? 127 / top : 0);
  alignas(64) float codes[kLanes];
  for (int64_t d = 0; d < dim; d += kLanes) {
    const Vec code = round_even(mul(load(row + d), scale));
    store(codes, max(min(code, set1(127)), set1(-127)));
    for (int64_t i = 0; i < kLanes && d + i < dim; ++i) {
      out[d + i] = static_cast<int8_t>(codes[i]);
    }
  }
  return top / 127;
}

static void write_k(const PageLayout& l, std::byte* head, int64_t slot, const float* row) {
  std::byte* to = head + slot * l.k_row_bytes;
  if (!l.int8) return narrow(row, l.dtype, l.k_dim, to, 0);
  const float scale = quantise(row, l.k_dim, reinterpret_cast<int8_t*>(to));
  std::memcpy(head + l.k_scales + slot * 4, &scale, 4);
}

static void write_v(const PageLayout& l, std::byte* head, int64_t slot, const float* row) {
  std::byte* to = head + l.v_first + slot * l.v_row_bytes;
  if (l.int8) {
    const float scale = quantise(row, l.v_dim, reinterpret_cast<int8_t*>(to));
    std::memcpy(head + l.v_scales + slot * 4, &scale, 4);
    return;
  }
  if (!l.paired_values) return narrow(row, l.dtype, l.v_dim, to, 0);
  auto* pair = reinterpret_cast<uint16_t*>(head + l.v_first + slot / 2 * (2 * l.v_row_bytes));
  alignas(64) uint16_t numbers[kLanes];
  for (int64_t d = 0; d < l.v_dim; d += kLanes) {
    store_bf16(numbers, load(row + d));
    for (int64_t i = 0; i < kLanes && d + i < l.v_dim; ++i) {
      pair[2 * (d + i) + slot % 2] = numbers[i];
    }
  }
}

// The heads of one token's q or k.
struct HeadRows {
  const void* from;
  int64_t first;  // element of the first head
  int64_t heads;
  int64_t dim;
  const void* norm;  // weights, or null
  float row_factor;  // of a norm over all heads
};

OCTAVO_INLINE HeadRows heads_of(const QkvJob& job, const void* from, int64_t first, int64_t heads,
                                int64_t dim, const void* norm) {
  HeadRows rows{from, first, heads, dim, norm, 0};
  if (norm != nullptr && job.norms_rows)
    rows.row_factor = norm_factor_of(from, job.dtype, first, heads * dim, job.eps);
  return rows;
}

// Loads head `h`, norms and rotates it, rounding after each operation.
OCTAVO_INLINE void prepare_head(const QkvJob& job, const HeadRows& rows, int64_t h, int64_t token,
                                float* row) {
  widen(rows.from, job.dtype, rows.first + h * rows.dim, rows.dim, row);
  if (rows.norm != nullptr) {
    const float factor = job.norms_rows ? rows.row_factor : norm_factor(row, rows.dim, job.eps);
    scale_head(row, rows.dim, factor, rows.norm, job.norm_dtype, job.norms_rows ? h * rows.dim : 0);
    round_row(row, rows.dim, job.dtype);
  }
  if (job.cosine != nullptr) {
    rotate_head(row, job.pairs, job.cosine + token * job.pairs, job.sine + token * job.pairs);
    round_row(row, rows.dim, job.dtype);
  }
}

OCTAVO_INLINE void prepare_value(const QkvJob& job, int64_t index, float* row) {
  const int64_t dim = job.layout.v_dim;
  widen(job.v, job.dtype, index, dim, row);
  if (!job.norms_values) return;
  scale_head(row, dim, norm_factor(row, dim, job.eps), nullptr, job.dtype, 0);
  round_row(row, dim, job.dtype);
}

static void qkv_rows(const QkvJob& job, int64_t token_begin, int64_t token_end) {
  alignas(64) float row[kLargestHead + kLanes];
  const PageLayout& l = job.layout;
  for (int64_t t = token_begin; t < token_end; ++t) {
    const HeadRows q = heads_of(job, job.q, t * job.q_stride, job.q_heads, job.q_dim, job.q_norm);
    for (int64_t h = 0; h < job.q_heads; ++h) {
      prepare_head(job, q, h, t, row);
      if (job.q_scale != nullptr) {
        scale_head(row, job.q_dim, job.q_scale[t], nullptr, job.dtype, 0);
      }
      narrow(row, job.dtype, job.q_dim, job.q_out, (t * job.q_heads + h) * job.q_dim);
    }
    if (job.slots == nullptr) continue;
    const HeadRows k = heads_of(job, job.k, t * job.k_stride, l.kv_heads, l.k_dim, job.k_norm);
    for (int64_t h = 0; h < l.kv_heads; ++h) {
      std::byte* head = job.slots[t].page + h * l.head_bytes;
      prepare_head(job, k, h, t, row);
      write_k(l, head, job.slots[t].slot, row);
      if (l.values_in_keys) continue;
      prepare_value(job, t * job.v_stride + h * l.v_dim, row);
      write_v(l, head, job.slots[t].slot, row);
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
