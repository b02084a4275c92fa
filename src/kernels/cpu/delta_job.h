// delta_job.h - the gated delta rule over raw memory: one head of one sequence at a time. No MLX.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/state_item.h"

namespace octavo::cpu {

// Strides are elements from one row to the next.
struct DeltaJob {
  const void* qkv = nullptr;  // q heads, k heads, v heads
  int64_t qkv_stride = 0;
  const void* gates = nullptr;  // z, a and b at their columns
  int64_t gates_stride = 0;
  int64_t z_column = 0;
  int64_t a_column = 0;
  int64_t b_column = 0;
  DType dtype = DType::kFloat32;  // of qkv, gates and out
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t k_dim = 0;
  int64_t v_dim = 0;
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
  const void* norm = nullptr;      // [v_dim]
  DType norm_dtype = DType::kFloat32;
  float norm_eps = 0;
  float* decay = nullptr;  // [T, value_heads], written by delta_gates
  float* beta = nullptr;   // likewise
  void* out = nullptr;     // [T, value_heads * v_dim]
};

// The rows of one sequence, for one value head.
struct DeltaItem : StateItem {
  const DeltaJob* job = nullptr;
};

}  // namespace octavo::cpu
