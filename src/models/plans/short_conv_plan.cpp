#include "models/plans/short_conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"

namespace octavo {

std::string ShortConvPlan::describe() const {
  return fmt::format("convolution of {} tokens, {} channels", kernel, channels);
}

uint64_t ShortConvPlan::parameters(int hidden) const {
  const uint64_t biases = bias ? 4 * widen(channels) + widen(hidden) : 0;
  return 4 * widen(hidden) * widen(channels) + widen(channels) * widen(kernel) + biases;
}

uint64_t ShortConvPlan::row_elements() const {
  // The projections, the input and result of the convolution, and its product with c.
  return 6 * widen(channels);
}

uint64_t ShortConvPlan::widest_input(int hidden) const { return widen(std::max(hidden, channels)); }

CacheSpec ShortConvPlan::cache_spec(DType dtype, KvFormat) const {
  return StateSpec{.conv_rows = kernel - 1, .conv_channels = channels, .conv_dtype = dtype};
}

}  // namespace octavo
