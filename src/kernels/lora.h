// lora.h - LoRA adapters of linear layers: y = finish(x W^T + scale * B (A x)), where `finish` is the
// rest of LinearOptions. Every row has the adapter of a slot or none. The bits of rows without an
// adapter do not change, and an adapter's row has the same bits alone and among others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/lora_plan.h"
#include "kernels/runtime/mlx.h"
#include "kernels/weights/packed_weight.h"

namespace octavo {

inline constexpr int kMostLoraRank = 256;

struct LoraShape {
  int slots = 0;
  int max_rank = 0;  // at most kMostLoraRank
  int inputs = 0;    // of the projection
  int outputs = 0;
  DType dtype = DType::kFloat32;  // of A and B: the model's

  int64_t a_bytes() const;  // of one slot
  int64_t b_bytes() const;
  int64_t bytes() const;  // of all slots: what make_lora_matrices allocates
};

// What a slot contains for one projection.
struct LoraSlot {
  int rank = 0;     // 0: nothing; rows with this slot get the product without an adapter
  float scale = 1;  // lora_alpha / rank, or lora_alpha / sqrt(rank) for rsLoRA
};

// The adapters of one projection, in memory that is allocated once. Read it through lora_a() and
// lora_b(); only kernels know the layout:
//   a   per slot: a packed dense weight [rank, inputs] (packed_weight.h), in memory for max_rank
//   b   per slot: [strip of 16 outputs][rank][16], zeros past the last output
struct LoraMatrices {
  LoraShape shape;
  mx::array a;  // uint8 [slots, a_bytes]
  mx::array b;  // uint8 [slots, b_bytes]
  std::vector<LoraSlot> slots;

  PackedView a_view(int slot) const;
  const std::byte* b_data(int slot) const;
};

// All slots are empty.
LoraMatrices make_lora_matrices(const LoraShape& shape);

// An adapter's matrices of one projection, as in the file. All spans must have exactly the size that
// the shape requires.
struct LoraSource {
  int rank = 0;
  float scale = 1;
  DType dtype = DType::kFloat32;
  std::span<const std::byte> a = {};  // PEFT: [rank, inputs]; mlx-lm: [inputs, rank]
  std::span<const std::byte> b = {};  // PEFT: [outputs, rank]; mlx-lm: [rank, outputs]
  bool is_transposed = false;         // mlx-lm's form
  // Row r of B is row output_order[r] of the file's, as for the weight (RowOrder). `file_outputs` is
  // the number of rows in the file: more if the projection is a part of a joined one.
  std::span<const int> output_order = {};
  int file_outputs = 0;  // 0: the projection's outputs
};

// Writes an adapter into a slot, rounded to the dtype of the matrices. No step that reads the slot may
// be in flight. Throws SetupError if a number is not finite in that dtype.
void write_lora(LoraMatrices& matrices, int slot, const LoraSource& source);
void clear_lora(LoraMatrices& matrices, int slot);

// A slot's matrices as float32 [rank, inputs] and [outputs, rank], for the reference version.
mx::array lora_a(const LoraMatrices& matrices, int slot);
mx::array lora_b(const LoraMatrices& matrices, int slot);

// The slot of every row of a step. Made once per step; cheap to copy.
class LoraRows {
 public:
  explicit LoraRows(std::span<const int32_t> slots)
      : plan_(std::make_shared<const LoraPlan>(make_lora_plan(slots))) {}

  bool has_adapters() const { return !plan_->order.empty(); }
  const LoraPlan& plan() const { return *plan_; }
  const std::shared_ptr<const LoraPlan>& shared_plan() const { return plan_; }

 private:
  std::shared_ptr<const LoraPlan> plan_;
};

// For LinearOptions.
struct LoraOptions {
  LoraRows rows;  // as many as x has
  // One per projection of the call, in its order; null: no adapter changes it. The pointers are used
  // during the call only.
  std::vector<const LoraMatrices*> layers;

  // Whether a projection of the call changes for a row.
  bool has_effect() const;
};

namespace reference {
// y: [..., outputs] float32. Adds scale * B (A x) to the rows with an adapter.
mx::array add_lora(const mx::array& y, const mx::array& x, const LoraRows& rows,
                   const LoraMatrices& matrices);
}  // namespace reference

}  // namespace octavo
