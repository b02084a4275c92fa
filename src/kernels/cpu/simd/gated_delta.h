// gated_delta.h (simd) - the gated delta rule of one head. The columns of the state, one per value
// dimension, are independent: a panel of a few vectors of columns processes all rows of a block
// while it is in the first-level cache. Every sum over the key dimension is sequential, so the
// split of rows into calls and blocks changes no bit. No MLX.
#pragma once

#include "kernels/cpu/delta_job.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kDeltaRows = 64;  // of a block

// Vectors of columns that are stored together: the state is kept by panel, [k_dim][vectors * 16], on
// every set, because its pages may be read by another process. With a register per vector, those of
// a panel share the broadcast of an element of k and q: as many as keep their sums in registers and
// the panel in the cache.
OCTAVO_INLINE int64_t panel_vectors(int64_t k_dim) { return k_dim <= 160 ? 4 : 2; }

// The rows of a block, prepared. q and k are normed; y receives the outputs before their norm.
struct DeltaBlock {
  float* q = nullptr;        // [rows, k_dim]
  float* k = nullptr;        // [rows, k_dim]
  float* y = nullptr;        // [rows, v_dim]
  float* columns = nullptr;  // [k_dim, 16]: a vector of a panel, see delta_vectors()
  int64_t first = 0;         // row of the batch
  int64_t rows = 0;
};

static int64_t delta_scratch(const DeltaJob& job) {
  const int64_t rows = kDeltaRows * (2 * job.k_dim + job.v_dim);
  return (rows + job.k_dim * kLanes) * static_cast<int64_t>(sizeof(float));
}

static void delta_gates(const DeltaJob& job, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t gates = row * job.gates_stride;
    for (int64_t h = 0; h < job.value_heads; h += kLanes) {
      const int64_t left = job.value_heads - h;
      const int64_t count = left < kLanes ? left : kLanes;
      const auto get = [&](const void* base, DType dtype, int64_t index) OCTAVO_INLINE_LAMBDA {
        return count == kLanes ? load_as(base, dtype, index) : load_part(base, dtype, index, count);
      };
      const auto put = [&](float* base, Vec v) OCTAVO_INLINE_LAMBDA {
        const int64_t index = row * job.value_heads + h;
        if (count == kLanes) return store(base + index, v);
        store_part(base, DType::kFloat32, index, count, v);
      };
      const Vec a = get(job.gates, job.dtype, gates + job.a_column + h);
      const Vec b = get(job.gates, job.dtype, gates + job.b_column + h);
      const Vec rate = exp(get(job.a_log, DType::kFloat32, h));
      const Vec step = softplus(add(a, get(job.dt_bias, DType::kFloat32, h)));
      put(job.decay, exp(sub(zero(), mul(rate, step))));
      put(job.beta, sigmoid(b));
    }
  }
}

// A head of q or k divided by its length, times `scale`.
OCTAVO_INLINE void unit_head(const DeltaJob& job, int64_t index, float scale, float* out) {
  Vec squares = zero();
  for (int64_t i = 0; i < job.k_dim; i += kLanes) {
    const Vec x = load_as(job.qkv, job.dtype, index + i);
    squares = fma(x, x, squares);
    store(out + i, x);
  }
  const Vec factor = set1(scale / __builtin_sqrtf(sum(squares) + 1e-6f));
  for (int64_t i = 0; i < job.k_dim; i += kLanes) store(out + i, mul(load(out + i), factor));
}

OCTAVO_INLINE void prefetch_head(const void* base, DType dtype, int64_t index, int64_t dim) {
  const int64_t width = element_bytes(dtype);
  const auto* bytes = static_cast<const unsigned char*>(base) + index * width;
  for (int64_t at = 0; at < dim * width; at += 64) __builtin_prefetch(bytes + at, 0, 2);
}

// A head is a short run in each of many long rows, which hardware prefetchers do not predict.
OCTAVO_INLINE void prefetch_row(const DeltaItem& item, int64_t key_head, int64_t row) {
  const DeltaJob& job = *item.job;
  const int64_t qkv = row * job.qkv_stride;
  const int64_t keys = job.key_heads * job.k_dim;
  prefetch_head(job.qkv, job.dtype, qkv + key_head * job.k_dim, job.k_dim);
  prefetch_head(job.qkv, job.dtype, qkv + keys + key_head * job.k_dim, job.k_dim);
  prefetch_head(job.qkv, job.dtype, qkv + 2 * keys + item.head * job.v_dim, job.v_dim);
  prefetch_head(job.gates, job.dtype, row * job.gates_stride + job.z_column + item.head * job.v_dim,
                job.v_dim);
}

static void prepare_block(const DeltaItem& item, const DeltaBlock& block) {
  constexpr int64_t kAhead = 8;  // rows
  const DeltaJob& job = *item.job;
  const int64_t key_head = item.head / (job.value_heads / job.key_heads);
  const float scale = 1 / __builtin_sqrtf(static_cast<float>(job.k_dim));
  for (int64_t r = 0; r < block.rows; ++r) {
    if (block.first + r + kAhead < item.row_end)
      prefetch_row(item, key_head, block.first + r + kAhead);
    const int64_t row = (block.first + r) * job.qkv_stride;
    unit_head(job, row + key_head * job.k_dim, scale, block.q + r * job.k_dim);
    unit_head(job, row + (job.key_heads + key_head) * job.k_dim, 1, block.k + r * job.k_dim);
  }
}

// memory = S k, of N vectors of a panel of P.
template <int N, int P>
OCTAVO_INLINE void recall(const float* state, const float* k, int64_t k_dim, Vec (&memory)[N]) {
  for (int n = 0; n < N; ++n) memory[n] = zero();
  for (int64_t i = 0; i < k_dim; ++i) {
    const Vec ki = set1(k[i]);
    _Pragma("GCC unroll 4") for (int n = 0; n < N; ++n) {
      memory[n] = fma(load(state + (i * P + n) * kLanes), ki, memory[n]);
    }
  }
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

// Columns [column, column + N * 16), of a panel of P vectors, through the rows of a block.
template <int N, int P>
static void delta_panel(const DeltaItem& item, const DeltaBlock& block, int64_t column,
                        const float* from, float* to) {
  const DeltaJob& job = *item.job;
  const int64_t values = 2 * job.key_heads * job.k_dim + item.head * job.v_dim + column;
  Vec memory[N], change[N], y[N];
  recall<N, P>(from, block.k, job.k_dim, memory);
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = block.first + r;
    const float decay = job.decay[row * job.value_heads + item.head];
    const Vec beta = set1(job.beta[row * job.value_heads + item.head]);
    for (int n = 0; n < N; ++n) {
      const Vec v = load_as(job.qkv, job.dtype, row * job.qkv_stride + values + n * kLanes);
      change[n] = mul(beta, fma(set1(-decay), memory[n], v));
    }
    const float* k = block.k + r * job.k_dim;
    const float* q = block.q + r * job.k_dim;
    if (r + 1 < block.rows) {
      update<N, P, true>(from, to, k, q, k + job.k_dim, job.k_dim, set1(decay), change, y, memory);
    } else {
      update<N, P, false>(from, to, k, q, nullptr, job.k_dim, set1(decay), change, y, memory);
    }
    for (int n = 0; n < N; ++n) store(block.y + r * job.v_dim + column + n * kLanes, y[n]);
    from = to;
  }
}

OCTAVO_INLINE void copy_vectors(const float* from, int64_t stride, float* to, int64_t to_stride,
                                int64_t count) {
  for (int64_t i = 0; i < count; ++i) store(to + i * to_stride, load(from + i * stride));
}

// A panel of P vectors.
template <int P>
static void delta_vectors(const DeltaItem& item, const DeltaBlock& block, int64_t column,
                          const float* from, float* to) {
  if constexpr (kRegs == 1 || P == 1) {
    delta_panel<P, P>(item, block, column, from, to);
  } else {
    constexpr int64_t kWorthCopying = 8;  // rows: lines far apart share few sets of the cache
    const int64_t k_dim = item.job->k_dim;
    for (int n = 0; n < P; ++n, column += kLanes, from += kLanes, to += kLanes) {
      if (block.rows < kWorthCopying) {
        delta_panel<1, P>(item, block, column, from, to);
        continue;
      }
      copy_vectors(from, P * kLanes, block.columns, kLanes, k_dim);
      delta_panel<1, 1>(item, block, column, block.columns, block.columns);
      copy_vectors(block.columns, kLanes, to, P * kLanes, k_dim);
    }
  }
}

static void delta_panels(const DeltaItem& item, const DeltaBlock& block, const float* from) {
  const DeltaJob& job = *item.job;
  const int64_t widest = panel_vectors(job.k_dim);
  for (int64_t column = 0; column < job.v_dim;) {
    const int64_t left = (job.v_dim - column) / kLanes;
    const int64_t vectors = left < widest ? left : widest;
    const int64_t at = column * job.k_dim;
    switch (vectors) {
      case 1:
        delta_vectors<1>(item, block, column, from + at, item.to + at);
        break;
      case 2:
        delta_vectors<2>(item, block, column, from + at, item.to + at);
        break;
      case 3:
        delta_vectors<3>(item, block, column, from + at, item.to + at);
        break;
      default:
        delta_vectors<4>(item, block, column, from + at, item.to + at);
    }
    column += vectors * kLanes;
  }
}

// out = rms_norm(y) * norm * silu(z)
static void finish_block(const DeltaItem& item, const DeltaBlock& block) {
  const DeltaJob& job = *item.job;
  for (int64_t r = 0; r < block.rows; ++r) {
    const float* y = block.y + r * job.v_dim;
    const int64_t row = block.first + r;
    const int64_t z = row * job.gates_stride + job.z_column + item.head * job.v_dim;
    const int64_t out = (row * job.value_heads + item.head) * job.v_dim;
    Vec squares = zero();
    for (int64_t d = 0; d < job.v_dim; d += kLanes)
      squares = fma(load(y + d), load(y + d), squares);
    const float mean = sum(squares) / static_cast<float>(job.v_dim);
    const Vec factor = set1(1 / __builtin_sqrtf(mean + job.norm_eps));
    for (int64_t d = 0; d < job.v_dim; d += kLanes) {
      const Vec normed = mul(mul(load(y + d), factor), load_as(job.norm, job.norm_dtype, d));
      store_as(job.out, job.dtype, out + d,
               mul(normed, silu(load_as(job.gates, job.dtype, z + d))));
    }
  }
}

static void delta_head(const DeltaItem& item, std::byte* scratch) {
  const DeltaJob& job = *item.job;
  DeltaBlock block;
  block.q = reinterpret_cast<float*>(scratch);
  block.k = block.q + kDeltaRows * job.k_dim;
  block.y = block.k + kDeltaRows * job.k_dim;
  block.columns = block.y + kDeltaRows * job.v_dim;
  const float* from = item.from;
  if (from == nullptr) {
    std::memset(item.to, 0, static_cast<size_t>(job.k_dim * job.v_dim) * sizeof(float));
    from = item.to;
  }
  for (block.first = item.row_begin; block.first < item.row_end; block.first += kDeltaRows) {
    const int64_t left = item.row_end - block.first;
    block.rows = left < kDeltaRows ? left : kDeltaRows;
    prepare_block(item, block);
    delta_panels(item, block, from);
    finish_block(item, block);
    from = item.to;
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
