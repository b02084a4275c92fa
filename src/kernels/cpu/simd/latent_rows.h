// latent_rows.h - norm and rotation of latent rows before they are written to pages, and rotation
// of the query heads' last numbers. Rows are independent. No MLX.
#pragma once

#include "kernels/cpu/latent_job.h"
#include "kernels/cpu/simd/qkv_rows.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Rotates 2 * pairs numbers at element `from` of `source` by the token's angles and writes them to
// element `to` of `target`.
OCTAVO_INLINE void move_rotated(const LatentJob& job, const void* source, int64_t from,
                                int64_t token, void* target, int64_t to) {
  alignas(64) float row[kLargestHead + kLanes];
  const int64_t dim = 2 * job.pairs;
  widen(source, job.dtype, from, dim, row);
  rotate_head(row, job.pairs, job.cosine + token * job.pairs, job.sine + token * job.pairs);
  narrow(row, job.dtype, dim, target, to);
}

static void latent_rows(const LatentJob& job, int64_t token_begin, int64_t token_end) {
  alignas(64) float row[kLargestHead + kLanes];
  const PageLayout& l = job.layout;
  const int64_t rank = l.v_dim;
  for (int64_t t = token_begin; t < token_end; ++t) {
    std::byte* key = job.slots[t].page + job.slots[t].slot * l.k_row_bytes;
    widen(job.latent, job.dtype, t * l.k_dim, rank, row);
    scale_head(row, rank, norm_factor(row, rank, job.eps), job.norm, job.norm_dtype, 0);
    narrow(row, job.dtype, rank, key, 0);
    move_rotated(job, job.latent, t * l.k_dim + rank, t, key, rank);
    for (int64_t h = t * job.heads; h < (t + 1) * job.heads; ++h)
      move_rotated(job, job.q, (h + 1) * job.q_dim - 2 * job.pairs, t, job.q_out,
                   h * l.k_dim + rank);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
