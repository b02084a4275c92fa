// moe_plan.h - a mixture of experts as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/types/activation_kind.h"
#include "kernels/types/expert_choice.h"
#include "models/plans/mlp_plan.h"

namespace octavo {

// Tensor names relative to the feed-forward module. Experts may be stored as one tensor per matrix
// ("switch_mlp.gate_proj"), with gate and up fused ("experts.gate_up_proj"), or as one module per
// expert ("experts.7.gate_proj").
struct MoeNames {
  std::string router = "gate";
  std::string choice_bias = "gate.e_score_correction_bias";
  // As mlx-lm converts: gate_proj, up_proj and down_proj below it, or fc1 and fc2 without a gate.
  std::string stack = "switch_mlp";
  std::string experts = "experts";  // as published: gate_up_proj and down_proj, or a number, below
  std::string expert_gate = "gate_proj";  // below that number
  std::string expert_up = "up_proj";
  std::string expert_down = "down_proj";
  std::string shared = "shared_experts";
  std::string shared_gate = "shared_expert_gate";
};

struct MoePlan {
  ExpertChoice choice = {};
  int intermediate = 0;  // of each expert
  Activation activation = Activation::kSilu;
  bool expert_bias = false;          // on each expert's three products
  bool router_bias = false;          // on the logits
  bool choice_bias = false;          // on the scores that select experts
  bool gated = true;                 // false: experts without a gate; its number is that of up
  int shared_intermediate = 0;       // > 0: a shared expert for every token
  bool shared_fused = false;         // its gate and up are one matrix
  bool shared_gate = false;          // scaled by the sigmoid of a projection
  bool interleaves_gate_up = false;  // in a fused tensor: rows alternate; otherwise gate, then up
  // Qwen3-VL: a fused tensor and its down_proj may have the axes of input and output exchanged.
  bool may_be_turned = false;
  MoeNames names = {};

  MlpPlan shared_mlp() const;    // the shared expert
  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  // Of those, used by one token.
  uint64_t active_parameters(int hidden) const;
  uint64_t expert_parameters(int hidden) const;  // of one expert
  // Expected share of the experts that a step of `tokens` tokens reads.
  double expected_share(uint64_t tokens) const;
  uint64_t row_elements(int hidden) const;
  uint64_t widest_input(int hidden) const;
};

}  // namespace octavo
