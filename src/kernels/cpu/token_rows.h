// token_rows.h (cpu) - slots and rotation angles for the kernels that write tokens to pages. No
// MLX.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/qkv_job.h"

namespace octavo::cpu {

// Rotation by positions[t] * inverse_frequencies[i], rounded to float32, times magnitude. With axes, by
// positions[axes[i] * axis_stride + t] instead.
struct RopeJob {
  const int32_t* positions = nullptr;          // [T], or [axes, T]
  const float* inverse_frequencies = nullptr;  // [pairs]
  int64_t pairs = 0;                           // 0: no rotation
  float magnitude = 1;
  const int32_t* axes = nullptr;  // [pairs], or null: all pairs have the first axis
  int64_t axis_stride = 0;        // T
  int64_t axis_count = 1;
};

// Cosines and sines of a run of tokens: [tokens, pairs] each.
struct Rotations {
  std::vector<float> cosine;
  std::vector<float> sine;

  void fill(const RopeJob& rope, int64_t begin, int64_t end);
};

// The slot of each of the batch's `tokens` rows in the pages.
std::vector<TokenSlot> token_slots(const PagedBatch& batch, int64_t tokens);

}  // namespace octavo::cpu
