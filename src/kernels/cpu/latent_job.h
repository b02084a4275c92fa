// latent_job.h - the rows of multi-head latent attention (MLA) that are written to pages and
// queries. No MLX.
#pragma once

#include <cstdint>

#include "kernels/cpu/page_layout.h"
#include "kernels/cpu/qkv_job.h"

namespace octavo::cpu {

// A latent row is [rank numbers, to be normed | 2 * pairs numbers, to be rotated]; rank is the
// pages' v_dim. The last 2 * pairs numbers of a query head are rotated, too.
struct LatentJob {
  const void* latent = nullptr;  // [T, rank + 2 * pairs]
  DType dtype = DType::kFloat32;
  const void* norm = nullptr;  // [rank]: RMS norm
  DType norm_dtype = DType::kFloat32;
  float eps = 0;
  const float* cosine = nullptr;  // [T, pairs]
  const float* sine = nullptr;
  int64_t pairs = 0;
  const TokenSlot* slots = nullptr;  // [T]
  PageLayout layout;
  const void* q = nullptr;  // [T, heads, q_dim]
  int64_t heads = 0;
  int64_t q_dim = 0;
  void* q_out = nullptr;  // [T, heads, rank + 2 * pairs], of which the last 2 * pairs are written
};

}  // namespace octavo::cpu
