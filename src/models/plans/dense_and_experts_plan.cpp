#include "models/plans/dense_and_experts_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"

namespace octavo {

std::string DenseAndExpertsPlan::describe() const {
  return fmt::format("{} plus {}", dense.describe(), experts.describe());
}

// Three norms, that of the router, and a scale per expert.
uint64_t DenseAndExpertsPlan::extras(int hidden) const {
  return 4 * widen(hidden) + widen(experts.choice.experts);
}

uint64_t DenseAndExpertsPlan::parameters(int hidden) const {
  return dense.parameters(hidden) + experts.parameters(hidden) + extras(hidden);
}

uint64_t DenseAndExpertsPlan::active_parameters(int hidden) const {
  return dense.parameters(hidden) + experts.active_parameters(hidden) + extras(hidden);
}

// In addition: the dense result before and after its norm, and the result of the experts.
uint64_t DenseAndExpertsPlan::row_elements(int hidden) const {
  return dense.row_elements() + experts.row_elements(hidden) + 3 * widen(hidden);
}

uint64_t DenseAndExpertsPlan::widest_input(int hidden) const {
  return std::max(dense.widest_input(hidden), experts.widest_input(hidden));
}

}  // namespace octavo
