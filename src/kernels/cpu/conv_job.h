// conv_job.h - the causal convolution over raw memory: some channels of one sequence at a time. No
// MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace octavo::cpu {

struct ConvJob {
  const std::byte* x = nullptr;  // the first channel of row 0
  int64_t x_stride = 0;          // bytes from one row to the next
  DType dtype = DType::kFloat32;
  int64_t channels = 0;
  int64_t past_rows = 0;       // the number of taps minus one
  const void* taps = nullptr;  // [past_rows + 1, channels]
  const void* bias = nullptr;  // [channels], or null
  DType weight_dtype = DType::kFloat32;
  bool silu = false;
  void* out = nullptr;  // [T, channels]
};

// The rows of one sequence, for a run of channels.
struct ConvItem {
  const ConvJob* job = nullptr;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t channel_begin = 0;
  int64_t channel_end = 0;
  const std::byte* fresh = nullptr;  // these channels of row_begin; the job's stride
  const std::byte* past = nullptr;   // the past_rows rows before it, the oldest first
  int64_t past_stride = 0;           // bytes
};

// Row `row` of the item, counted from row_begin; past rows are negative. Forced inline because
// files of several instruction sets include it.
__attribute__((always_inline)) inline const std::byte* conv_input(const ConvItem& item,
                                                                  int64_t row) {
  if (row >= 0) return item.fresh + row * item.job->x_stride;
  return item.past + (item.job->past_rows + row) * item.past_stride;
}

}  // namespace octavo::cpu
