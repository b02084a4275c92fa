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
#include "kernels/lora_shape.h"
#include "kernels/metal/lora_tables.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// The adapters of one projection, in memory that is allocated once (LoraView has its layout).
struct LoraMatrices {
  LoraShape shape;
  mx::array a;  // uint8 [slots, a_bytes]
  mx::array b;  // uint8 [slots, b_bytes]
  std::vector<LoraSlot> slots;

  LoraView view() const { return {shape, slots, a.data<std::byte>(), b.data<std::byte>()}; }
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
  const std::shared_ptr<metal::LoraTables>& tables() const { return tables_; }

 private:
  std::shared_ptr<const LoraPlan> plan_;
  // On Metal, what the layers of the step share.
  std::shared_ptr<metal::LoraTables> tables_ = std::make_shared<metal::LoraTables>();
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

// The adapters of a mixture of experts: the matrices of expert e in slot s are those of slot
// s * experts + e. The pointers are used during the call only.
struct ExpertLora {
  LoraRows rows;  // the slot of every token
  const LoraMatrices* gate;
  const LoraMatrices* up;  // that of the gate if the experts have none
  const LoraMatrices* down;

  // Whether an expert changes for a token.
  bool has_effect(int experts) const;
};

namespace reference {
// y: [..., outputs] float32. Adds scale * B (A x) to the rows with an adapter.
mx::array add_lora(const mx::array& y, const mx::array& x, const LoraRows& rows,
                   const LoraMatrices& matrices);
// y: [T, K, outputs] float32, x: [T, K or 1, inputs], ids: [T, K] int32, each token's experts. Adds scale
// * B (A x) of each expert to the tokens with an adapter.
mx::array add_expert_lora(const mx::array& y, const mx::array& x, const mx::array& ids, int experts,
                          const LoraRows& rows, const LoraMatrices& matrices);
// y: [T, inputs] float32. Adds scale * B[token] A to the rows with an adapter.
mx::array add_embedding_lora(const mx::array& y, const mx::array& tokens, const LoraRows& rows,
                             const LoraMatrices& matrices);
}  // namespace reference

}  // namespace octavo
