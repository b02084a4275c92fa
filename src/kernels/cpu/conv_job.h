// conv_job.h - the causal convolution over raw memory: some channels of one sequence at a time. No
// MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace octavo::cpu {

struct ConvJob {
  const void* x = nullptr;  // the first channel of row 0
  int64_t x_stride = 0;     // elements from one row to the next
  DType dtype = DType::kFloat32;
  int64_t channels = 0;
  int64_t state_rows = 0;      // one less than there are taps
  const void* taps = nullptr;  // [state_rows + 1, channels]
  const void* bias = nullptr;  // [channels], or none
  DType weight_dtype = DType::kFloat32;
  bool silu = false;
  void* out = nullptr;  // [T, channels]
};

// The rows of one sequence, for the channels of one unit.
struct ConvItem {
  const ConvJob* job = nullptr;
  int64_t channel_begin = 0;
  int64_t channel_end = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  const std::byte* from = nullptr;  // [state_rows][channel_end - channel_begin]; null: zeros
  std::byte* to = nullptr;          // may be `from`
};

}  // namespace octavo::cpu
