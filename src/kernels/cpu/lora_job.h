// lora_job.h - LoRA adapters of one product: what is added to its sums. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace octavo::cpu {

// The adapter of one group of rows.
struct LoraGroupJob {
  int64_t rank = 0;              // 0: nothing is added
  const float* inner = nullptr;  // A x: row i of the group at i * stride, or row i of the call
  int64_t stride = 0;
  const std::byte* b = nullptr;  // [strip of 16 outputs][rank][16]
  float scale = 1;
  int32_t first = 0;  // the place of its first row
};

// The pointers are to the vectors of LoraPlan, which says what they contain.
struct LoraJob {
  const LoraGroupJob* groups = nullptr;  // by group of the plan
  const int32_t* order = nullptr;
  const int32_t* groups_of = nullptr;
  const int32_t* block_begins = nullptr;
  const int32_t* block_places = nullptr;
  DType dtype = DType::kFloat32;  // of b
  int64_t first_row = 0;          // row 0 of the product is this row of the plan
  bool has_all_rows = false;      // `inner` has all rows of the call, not only those of its group

  const float* inner_of(const LoraGroupJob& group, int32_t place) const {
    return group.inner + (has_all_rows ? order[place] : place - group.first) * group.stride;
  }
};

}  // namespace octavo::cpu
