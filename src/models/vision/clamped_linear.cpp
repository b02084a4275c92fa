#include "models/vision/clamped_linear.h"

#include <utility>

#include "base/error.h"

namespace octavo {
namespace {

mx::array within(const mx::array& x, const Clamp& clamp) {
  return mx::clip(x, mx::astype(clamp.low, x.dtype()), mx::astype(clamp.high, x.dtype()));
}

Clamp load_clamp(WeightSource& source, const std::string& name) {
  const auto load = [&](const char* end) {
    mx::array limit = mx::astype(source.array(name + end, {}), mx::float32);
    limit.eval();
    return limit;
  };
  return {.low = load("_min"), .high = load("_max")};
}

}  // namespace

mx::array ClampedLinear::forward(const mx::array& x, const LinearOptions& options) const {
  LinearOptions product = options;
  product.bias = linear.bias;
  if (!input) return octavo::linear(x, linear.weight, product);
  OCTAVO_CHECK(!options.norm && !options.residual);
  return within(octavo::linear(within(x, *input), linear.weight, product), *output);
}

ClampedLinear load_clamped_linear(WeightSource& source, const std::string& name, int rows, int cols,
                                  RowOrder order) {
  Weight weight = source.matrix(name + ".linear", rows, cols, order);
  return {.linear = {std::move(weight), std::nullopt},
          .input = load_clamp(source, name + ".input"),
          .output = load_clamp(source, name + ".output")};
}

}  // namespace octavo
