// dense_and_experts_plan.h - a dense MLP and a mixture of experts in parallel (Gemma 4 26B), as
// data. No MLX.
#pragma once

#include "models/plans/mlp_plan.h"
#include "models/plans/moe_plan.h"

namespace octavo {

// norm_1(mlp(norm_in(x))) + norm_2(experts(norm_3(x))). The router has its own norm of x, and the
// result of each expert is multiplied by a scale from the checkpoint.
struct DenseAndExpertsPlan {
  MlpPlan dense = {};
  MoePlan experts = {};

  std::string describe() const;  // for display
  uint64_t parameters(int hidden) const;
  uint64_t active_parameters(int hidden) const;  // of those, used by one token
  uint64_t row_elements(int hidden) const;
  uint64_t widest_input(int hidden) const;

 private:
  uint64_t extras(int hidden) const;
};

}  // namespace octavo
