#include "models/plans/gated_delta_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"

namespace octavo {

std::string GatedDeltaPlan::describe() const {
  return fmt::format("gated delta, {} key and {} value heads of {} x {}", key_heads, value_heads,
                     k_dim, v_dim);
}

uint64_t GatedDeltaPlan::parameters(int hidden) const {
  const uint64_t values = widen(value_heads) * widen(v_dim);
  // In: q, k, v, the gate z, and a and b of each head. Out: from the values. Then the convolution,
  // A_log and dt_bias, and the norm.
  return widen(hidden) * (widen(conv_channels()) + values + 2 * widen(value_heads)) +
         widen(hidden) * values + widen(conv_channels()) * widen(conv_kernel) +
         2 * widen(value_heads) + widen(v_dim);
}

uint64_t GatedDeltaPlan::row_elements() const {
  // The projections, the convolved q, k and v, and the normed result, once more if reordered.
  return 2 * widen(conv_channels()) + (tiled_values ? 3 : 2) * widen(value_heads) * widen(v_dim) +
         2 * widen(value_heads);
}

uint64_t GatedDeltaPlan::widest_input(int hidden) const {
  return std::max(widen(hidden), widen(value_heads) * widen(v_dim));
}

CacheSpec GatedDeltaPlan::cache_spec(DType dtype, KvFormat) const {
  return StateSpec{.heads = value_heads,
                   .k_dim = k_dim,
                   .v_dim = v_dim,
                   .conv_rows = conv_kernel - 1,
                   .conv_channels = conv_channels(),
                   .conv_dtype = dtype};
}

}  // namespace octavo
