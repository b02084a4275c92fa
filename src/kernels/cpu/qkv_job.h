// qkv_job.h - the rows of q, k and v before attention: norm and rotation if requested; k and v are
// written to the pages. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/page_layout.h"

namespace octavo::cpu {

inline constexpr int64_t kLargestHead = 1024;

// The page of a token's K and V, and the token's slot in it.
struct TokenSlot {
  std::byte* page = nullptr;
  int64_t slot = 0;
};

// Heads of a token are adjacent; strides are elements from one token to the next.
struct QkvJob {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;  // may be k itself
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  DType dtype = DType::kFloat32;
  int64_t q_heads = 0;  // 0: no q
  int64_t q_dim = 0;
  const void* q_norm = nullptr;  // [q_dim], or no norm
  const void* k_norm = nullptr;  // [k_dim], or no norm
  bool norms_rows = false;       // the norms are over all heads of a token together: [heads * dim]
  bool norms_values = false;     // RMS norm of each v head, without a weight
  DType norm_dtype = DType::kFloat32;
  float eps = 0;
  const float* cosine = nullptr;  // [T, pairs], or no rotation
  const float* sine = nullptr;
  int64_t pairs = 0;
  const float* q_scale = nullptr;    // [T], or null: multiplies q, last
  void* q_out = nullptr;             // [T, q_heads, q_dim]
  const TokenSlot* slots = nullptr;  // [T], or no k and v
  PageLayout layout;
};

}  // namespace octavo::cpu
