// mlp_plan.h - the dense MLP as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/types/activation_kind.h"

namespace octavo {

struct MlpPlan {
  int intermediate = 0;
  Activation activation = Activation::kSilu;
  bool bias = false;
  bool fused = false;   // gate and up are one matrix, "gate_up_proj"
  bool gated = true;    // false: no gate; its number is that of up
  bool squares = true;  // without a gate: activation(up) * up; false: activation(up)

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  uint64_t row_elements() const;
  uint64_t widest_input(int hidden) const;
};

}  // namespace octavo
