// latent_job.h - rows of multi-head latent attention on their way into the pages and the queries.
// No MLX.
#pragma once

#include <cstdint>

#include "kernels/cpu/page_layout.h"
#include "kernels/cpu/qkv_job.h"

namespace octavo::cpu {

// A latent row is [rank numbers, to be normed | 2 * pairs numbers, to be rotated], rank being the
// pages' v_dim. A query head ends with 2 * pairs numbers that are rotated, too.
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
