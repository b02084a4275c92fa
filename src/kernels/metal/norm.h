// norm.h (metal) - launches norm.metal.
#pragma once

#include <optional>

#include "kernels/metal/encoder.h"
#include "kernels/types/norm_kind.h"

namespace octavo::metal {

struct NormCall {
  mx::array x;                         // [..., D]
  mx::array weight;                    // [D]
  std::optional<mx::array> bias = {};  // [D] of the weight's type
  Norm kind = Norm::kRms;
  float eps = 0;
  int groups = 1;  // parts of a row that are normalised separately
  mx::array out;   // x's shape and dtype, allocated
};
void norm(const NormCall& call, Encoder& encoder);

}  // namespace octavo::metal
