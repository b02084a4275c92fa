// mamba2.h (simd) - Mamba-2's recurrence of one head (state_panels.h). No MLX.
#pragma once

#include "kernels/cpu/mamba_job.h"
#include "kernels/cpu/simd/state_panels.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The rows of a block in float32; y receives S c.
struct MambaBlock {
  float* b = nullptr;        // [rows, state_dim]
  float* c = nullptr;        // [rows, state_dim]
  float* y = nullptr;        // [rows, head_dim]
  float* columns = nullptr;  // [state_dim, 16]: for state_panels()
  int64_t first = 0;         // row of the batch
  int64_t rows = 0;
};

static int64_t mamba_scratch(const MambaJob& job) {
  const int64_t rows = kStateRows * (2 * job.state_dim + job.head_dim);
  return (rows + job.state_dim * kLanes) * static_cast<int64_t>(sizeof(float));
}

static void mamba_gates(const MambaJob& job, int64_t row_begin, int64_t row_end) {
  each_head_vector(
      row_begin, row_end, job.heads, [&](const HeadVector& heads) OCTAVO_INLINE_LAMBDA {
        const int64_t index = heads.row * job.gates_stride + job.dt_column + heads.first;
        const Vec step = step_of(heads.load(job.gates, job.dtype, index),
                                 heads.load(job.dt_bias, DType::kFloat32, heads.first));
        heads.store(job.decay, decay_of(heads.load(job.a_log, DType::kFloat32, heads.first), step));
        heads.store(job.step, step);
      });
}

static void prepare_mamba_block(const MambaItem& item, const MambaBlock& block) {
  constexpr int64_t kAhead = 8;  // rows, because hardware prefetchers do not predict short runs
  const MambaJob& job = *item.job;
  const int64_t group = item.head / (job.heads / job.groups);
  const int64_t values = job.heads * job.head_dim;
  const int64_t b = values + group * job.state_dim;
  const int64_t c = b + job.groups * job.state_dim;
  for (int64_t r = 0; r < block.rows; ++r) {
    if (block.first + r + kAhead < item.row_end) {
      const int64_t ahead = (block.first + r + kAhead) * job.xbc_stride;
      prefetch_head(job.xbc, job.dtype, ahead + item.head * job.head_dim, job.head_dim);
      prefetch_head(job.xbc, job.dtype, ahead + b, job.state_dim);
      prefetch_head(job.xbc, job.dtype, ahead + c, job.state_dim);
    }
    const int64_t row = (block.first + r) * job.xbc_stride;
    for (int64_t i = 0; i < job.state_dim; i += kLanes) {
      store(block.b + r * job.state_dim + i, load_as(job.xbc, job.dtype, row + b + i));
      store(block.c + r * job.state_dim + i, load_as(job.xbc, job.dtype, row + c + i));
    }
  }
}

// Columns [column, column + N * 16), of a panel of P vectors, through the rows of a block.
template <int N, int P>
static void mamba_panel(const MambaItem& item, const MambaBlock& block, int64_t column,
                        const float* from, float* to) {
  const MambaJob& job = *item.job;
  Vec change[N], y[N], unused[N];
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = block.first + r;
    const int64_t x = row * job.xbc_stride + item.head * job.head_dim + column;
    const Vec decay = set1(job.decay[row * job.heads + item.head]);
    const Vec step = set1(job.step[row * job.heads + item.head]);
    for (int n = 0; n < N; ++n) change[n] = mul(step, load_as(job.xbc, job.dtype, x + n * kLanes));
    update<N, P, false>(from, to, block.b + r * job.state_dim, block.c + r * job.state_dim, nullptr,
                        job.state_dim, decay, change, y, unused);
    for (int n = 0; n < N; ++n) store(block.y + r * job.head_dim + column + n * kLanes, y[n]);
    from = to;
  }
}

// out = (y + d x) * silu(z)
static void finish_mamba_block(const MambaItem& item, const MambaBlock& block) {
  const MambaJob& job = *item.job;
  const Vec d = set1(job.d[item.head]);
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t row = block.first + r;
    const int64_t head = item.head * job.head_dim;
    const int64_t x = row * job.xbc_stride + head;
    const int64_t z = row * job.gates_stride + job.z_column + head;
    const int64_t out = row * job.heads * job.head_dim + head;
    for (int64_t i = 0; i < job.head_dim; i += kLanes) {
      const Vec y =
          fma(d, load_as(job.xbc, job.dtype, x + i), load(block.y + r * job.head_dim + i));
      store_as(job.out, job.dtype, out + i, mul(y, silu(load_as(job.gates, job.dtype, z + i))));
    }
  }
}

static void mamba_head(const MambaItem& item, std::byte* scratch) {
  const MambaJob& job = *item.job;
  MambaBlock block;
  block.b = reinterpret_cast<float*>(scratch);
  block.c = block.b + kStateRows * job.state_dim;
  block.y = block.c + kStateRows * job.state_dim;
  block.columns = block.y + kStateRows * job.head_dim;
  const float* from = item.from;
  if (from == nullptr) {
    std::memset(item.to, 0, static_cast<size_t>(job.state_dim * job.head_dim) * sizeof(float));
    from = item.to;
  }
  for (block.first = item.row_begin; block.first < item.row_end; block.first += kStateRows) {
    const int64_t left = item.row_end - block.first;
    block.rows = left < kStateRows ? left : kStateRows;
    prepare_mamba_block(item, block);
    state_panels({job.state_dim, job.head_dim, block.rows, block.columns}, from, item.to,
                 [&]<int N, int P>(int64_t column, const float* panel_from, float* panel_to) {
                   mamba_panel<N, P>(item, block, column, panel_from, panel_to);
                 });
    finish_mamba_block(item, block);
    from = item.to;
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
