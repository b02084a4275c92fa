#include "models/plans/mamba2_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"

namespace octavo {

std::string Mamba2Plan::describe() const {
  return fmt::format("Mamba-2, {} heads of {}, state of {}", heads, head_dim, state_dim);
}

uint64_t Mamba2Plan::parameters(int hidden) const {
  const uint64_t inputs = widen(values()) + widen(conv_channels()) + widen(heads);
  const uint64_t biases =
      (conv_bias ? widen(conv_channels()) : 0) + (bias ? inputs + widen(hidden) : 0);
  // The projections, the convolution, A_log, dt_bias and D, and the norm.
  return widen(hidden) * (inputs + widen(values())) + widen(conv_channels()) * widen(conv_kernel) +
         3 * widen(heads) + widen(values()) + biases;
}

uint64_t Mamba2Plan::row_elements() const {
  // The projections, the convolved x, b and c, and the result before and after its norm.
  return 2 * widen(conv_channels()) + 3 * widen(values()) + widen(heads);
}

uint64_t Mamba2Plan::widest_input(int hidden) const { return widen(std::max(hidden, values())); }

CacheSpec Mamba2Plan::cache_spec(DType dtype, KvFormat) const {
  return StateSpec{.heads = heads,
                   .k_dim = state_dim,
                   .v_dim = head_dim,
                   .conv_rows = conv_kernel - 1,
                   .conv_channels = conv_channels(),
                   .conv_dtype = dtype};
}

}  // namespace octavo
