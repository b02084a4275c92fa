// dense_and_experts_plan.h - a dense MLP and a mixture of experts side by side (Gemma 4 26B), as
// data. No MLX.
#pragma once

#include "models/plans/mlp_plan.h"
#include "models/plans/moe_plan.h"

namespace octavo {

// norm_1(mlp(norm_in(x))) + norm_2(experts(norm_3(x))). The router reads x through a norm of its
// own, and what an expert gives is scaled by a number of the checkpoint.
struct DenseAndExpertsPlan {
  MlpPlan dense = {};
  MoePlan experts = {};

  std::string describe() const;  // for people
  uint64_t parameters(int hidden) const;
  uint64_t active_parameters(int hidden) const;  // of those, what one token meets
  uint64_t row_elements(int hidden) const;
  uint64_t widest_input(int hidden) const;

 private:
  uint64_t extras(int hidden) const;
};

}  // namespace octavo
