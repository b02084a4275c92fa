// mamba_job.h - Mamba-2's recurrence over raw memory: one head of one sequence at a time. No MLX.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/state_item.h"

namespace octavo::cpu {

// Strides are elements from one row to the next.
struct MambaJob {
  const void* xbc = nullptr;  // x heads, b groups, c groups
  int64_t xbc_stride = 0;
  const void* gates = nullptr;  // z and dt at their columns
  int64_t gates_stride = 0;
  int64_t z_column = 0;
  int64_t dt_column = 0;
  DType dtype = DType::kFloat32;  // of xbc, gates and out
  int64_t heads = 0;
  int64_t groups = 0;
  int64_t state_dim = 0;
  int64_t head_dim = 0;
  const float* a_log = nullptr;    // [heads]
  const float* dt_bias = nullptr;  // [heads]
  const float* d = nullptr;        // [heads]
  float* decay = nullptr;          // [T, heads], written by mamba_gates
  float* step = nullptr;           // likewise
  void* out = nullptr;             // [T, heads * head_dim]
};

struct MambaItem : StateItem {
  const MambaJob* job = nullptr;
};

}  // namespace octavo::cpu
