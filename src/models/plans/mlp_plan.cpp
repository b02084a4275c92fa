#include "models/plans/mlp_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"

namespace octavo {

std::string MlpPlan::describe() const { return fmt::format("MLP of {}", intermediate); }

uint64_t MlpPlan::parameters(int hidden) const {
  const uint64_t first = gated ? 2 : 1;
  const uint64_t biases = bias ? first * widen(intermediate) + widen(hidden) : 0;
  return (first + 1) * widen(hidden) * widen(intermediate) + biases;
}

uint64_t MlpPlan::row_elements() const { return widen(intermediate) * (gated ? 1 : 2); }

uint64_t MlpPlan::widest_input(int hidden) const { return widen(std::max(hidden, intermediate)); }

}  // namespace octavo
