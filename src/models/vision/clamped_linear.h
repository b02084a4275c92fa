// clamped_linear.h - a linear layer whose input and output may be clamped. Engine thread only.
#pragma once

#include <optional>
#include <string>

#include "kernels/linear.h"
#include "models/weight_source.h"

namespace octavo {

struct Clamp {
  mx::array low;  // a number of float32
  mx::array high;
};

struct ClampedLinear {
  Projection linear;
  std::optional<Clamp> input = {};
  std::optional<Clamp> output = {};

  // With a clamp, norms and sums that `options` would join to the product are not allowed.
  mx::array forward(const mx::array& x, const LinearOptions& options) const;
};

// Module `name` with its limits input_min, input_max, output_min and output_max.
ClampedLinear load_clamped_linear(WeightSource& source, const std::string& name, int rows, int cols,
                                  RowOrder order = {});

}  // namespace octavo
