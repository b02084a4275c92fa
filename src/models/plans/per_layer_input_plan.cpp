#include "models/plans/per_layer_input_plan.h"

#include "base/widen.h"

namespace octavo {

uint64_t PerLayerInputPlan::parameters(int hidden, size_t layers) const {
  // For all layers: the table, the input projection and the norm. Per layer: two matrices and a
  // norm.
  const uint64_t all = widen(width) * layers;
  return widen(vocab) * all + widen(hidden) * all + widen(width) +
         layers * (2 * widen(hidden) * widen(width) + widen(hidden));
}

uint64_t PerLayerInputPlan::row_elements(int hidden) const {
  // Gate, gated result, output projection and sum.
  return 2 * widen(width) + 2 * widen(hidden);
}

uint64_t PerLayerInputPlan::shared_row_elements(size_t layers) const {
  return 3 * widen(width) * layers;  // embedded, projected and their sum
}

}  // namespace octavo
