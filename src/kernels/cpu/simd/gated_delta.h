// gated_delta.h (simd) - the gated delta rule of one head (state_panels.h). No MLX.
#pragma once

#include "kernels/cpu/delta_job.h"
#include "kernels/cpu/simd/state_panels.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The rows of a block, prepared. q and k are normed; y receives the outputs before their norm.
struct DeltaBlock {
  float* q = nullptr;        // [rows, k_dim]
  float* k = nullptr;        // [rows, k_dim]
  float* y = nullptr;        // [rows, v_dim]
  float* columns = nullptr;  // [k_dim, 16]: for state_panels()
  int64_t first = 0;         // row of the batch
  int64_t rows = 0;
};

static int64_t delta_scratch(const DeltaJob& job) {
  const int64_t rows = kStateRows * (2 * job.k_dim + job.v_dim);
  return (rows + job.k_dim * kLanes) * static_cast<int64_t>(sizeof(float));
}

static void delta_gates(const DeltaJob& job, int64_t row_begin, int64_t row_end) {
  each_head_vector(
      row_begin, row_end, job.value_heads, [&](const HeadVector& heads) OCTAVO_INLINE_LAMBDA {
        const int64_t gates = heads.row * job.gates_stride;
        const Vec a = heads.load(job.gates, job.dtype, gates + job.a_column + heads.first);
        const Vec b = heads.load(job.gates, job.dtype, gates + job.b_column + heads.first);
        heads.store(job.decay,
                    decay_of(heads.load(job.a_log, DType::kFloat32, heads.first),
                             step_of(a, heads.load(job.dt_bias, DType::kFloat32, heads.first))));
        heads.store(job.beta, sigmoid(b));
      });
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
  block.k = block.q + kStateRows * job.k_dim;
  block.y = block.k + kStateRows * job.k_dim;
  block.columns = block.y + kStateRows * job.v_dim;
  const float* from = item.from;
  if (from == nullptr) {
    std::memset(item.to, 0, static_cast<size_t>(job.k_dim * job.v_dim) * sizeof(float));
    from = item.to;
  }
  for (block.first = item.row_begin; block.first < item.row_end; block.first += kStateRows) {
    const int64_t left = item.row_end - block.first;
    block.rows = left < kStateRows ? left : kStateRows;
    prepare_block(item, block);
    state_panels({job.k_dim, job.v_dim, block.rows, block.columns}, from, item.to,
                 [&]<int N, int P>(int64_t column, const float* panel_from, float* panel_to) {
                   delta_panel<N, P>(item, block, column, panel_from, panel_to);
                 });
    finish_block(item, block);
    from = item.to;
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
