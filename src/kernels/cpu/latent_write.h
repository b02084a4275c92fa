// latent_write.h (cpu) - writes latent rows to the pages and maps queries to the latent space,
// split over threads. No MLX.
#pragma once

#include <cstdint>

#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/token_rows.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::cpu {

// The pages hold [rank | 2 * rope.pairs] per token: v_dim is the rank, k_dim the sum.
struct LatentWriteArgs {
  PagedBatch batch;
  int64_t tokens = 0;
  const void* latent = nullptr;  // [T, k_dim]
  const void* norm = nullptr;    // [rank]
  DType norm_dtype = DType::kFloat32;
  float eps = 0;
  const void* q = nullptr;  // [T, heads, q_dim]
  int64_t heads = 0;
  int64_t q_dim = 0;
  PackedView absorbed = {};  // [heads * rank, q_dim - 2 * rope.pairs]
  RopeJob rope;
  void* q_out = nullptr;  // [T, heads, k_dim]
};
void latent_write(const LatentWriteArgs& args);

}  // namespace octavo::cpu
