// expert_lora.h (cpu) - LoRA adapters of the products of a mixture of experts. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/expert_rows.h"
#include "kernels/cpu/lora.h"

namespace octavo::cpu {

// The adapters of a call. The matrices of expert e in slot s are those of slot s * experts + e.
struct ExpertLoraArgs {
  std::shared_ptr<const LoraPlan> tokens;  // the slot of every token
  LoraView gate = {};
  LoraView up = {};
  LoraView down = {};
};

// The rows of all experts by the slot of their matrices; the padding between groups has none.
std::shared_ptr<const LoraPlan> plan_expert_lora(const LoraPlan& tokens, const ExpertRows& rows,
                                                 int64_t experts);

// What the products of all experts add. Its memory is the calling thread's until the next call.
class ExpertLoraProducts {
 public:
  // x: the gathered rows, as for LoraProducts. layers: of one product, or of gate and up.
  ExpertLoraProducts(const RowsJob& x, std::shared_ptr<const LoraPlan> plan,
                     std::vector<LoraView> layers)
      : plan_(std::move(plan)), products_(x, {plan_, std::move(layers)}) {}

  // For the product of one expert's rows; nothing if no row of it has an adapter that changes the part.
  std::optional<LoraJob> job(size_t part, const ExpertGroup& group) const;

 private:
  std::shared_ptr<const LoraPlan> plan_;
  LoraProducts products_;
};

}  // namespace octavo::cpu
