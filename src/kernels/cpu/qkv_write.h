// qkv_write.h (cpu) - prepares q and writes k and v to the pages, split over threads.
#pragma once

#include <cstdint>

#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/token_rows.h"

namespace octavo::cpu {

// Multiplies q by 1 + beta * log(1 + floor(position / period)).
struct PositionScale {
  const int32_t* positions = nullptr;  // [T]
  float beta = 0;                      // 0: none
  float period = 1;
};

// One matrix of rows, or three: strides are elements from one token to the next.
struct QkvWriteArgs {
  PagedBatch batch;  // without pages: q only
  int64_t tokens = 0;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  DType dtype = DType::kFloat32;
  int64_t q_heads = 0;
  int64_t q_dim = 0;
  const void* q_norm = nullptr;
  const void* k_norm = nullptr;
  bool norms_rows = false;
  bool norms_values = false;
  DType norm_dtype = DType::kFloat32;
  float eps = 0;
  RopeJob rope;
  PositionScale position_scale;
  void* q_out = nullptr;
};
void qkv_write(const QkvWriteArgs& args);

}  // namespace octavo::cpu
