// sublayer.h - one half of a layer: a mixer (attention and its kin) or a feed-forward.
#pragma once

#include <optional>

#include "kernels/norm.h"
#include "models/layers/forward_context.h"

namespace octavo {

// What a half does around its own work, so that its first and last products can take it over.
struct Surroundings {
  std::optional<NormSpec> norm;  // of the input
  bool add_input = true;         // returns x + f(norm(x)), else f(norm(x))
};

class Sublayer {
 public:
  virtual ~Sublayer() = default;

  // x: [T, hidden], as is the result.
  virtual mx::array forward(const mx::array& x, const Surroundings& around,
                            ForwardContext& context) const = 0;
};

}  // namespace octavo
