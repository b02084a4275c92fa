// lora_shape.h - the layout of the memory that holds the LoRA adapters of one projection. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/weights/packed_weight.h"

namespace octavo {

inline constexpr int kMostLoraRank = 256;

struct LoraShape {
  int slots = 0;
  int max_rank = 0;  // at most kMostLoraRank
  int inputs = 0;    // of the projection
  int outputs = 0;
  DType dtype = DType::kFloat32;  // of A and B: the model's

  PackedLayout a_layout(int rank) const;
  int64_t a_bytes() const;  // of one slot
  int64_t b_bytes() const;
  int64_t bytes() const;  // of all slots

  int64_t padded_rank() const;  // the rows of A in a slot: the largest rank, in whole strips
};

// What a slot contains for one projection.
struct LoraSlot {
  int rank = 0;     // 0: nothing; rows with this slot get the product without an adapter
  float scale = 1;  // lora_alpha / rank, or lora_alpha / sqrt(rank) for rsLoRA
};

// At the start of a slot's B, for kernels that read ranks and scales on the device.
struct LoraHeader {
  int32_t rank;
  float scale;
};
inline constexpr int64_t kLoraHeaderBytes = 64;

// The adapters of one projection, borrowed.
//   a   per slot, a_bytes() each: a packed dense weight [rank, inputs], then zeros
//   b   per slot, b_bytes() each: LoraHeader, then from kLoraHeaderBytes on
//       [strip of 16 outputs][rank][16]; zeros past the last output
struct LoraView {
  LoraShape shape = {};
  std::vector<LoraSlot> slots = {};
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;

  const LoraSlot& slot(int32_t index) const { return slots[static_cast<size_t>(index)]; }
  PackedView a_of(int32_t index) const;
  // The A of all slots as one weight, padded_rank() rows each; the rows past a slot's rank are zero.
  PackedView all_a() const;
  const std::byte* b_of(int32_t index) const {
    return b + index * shape.b_bytes() + kLoraHeaderBytes;
  }
};

}  // namespace octavo
