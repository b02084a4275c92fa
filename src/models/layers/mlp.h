// mlp.h - the gated dense MLP.
#pragma once

#include <string>

#include "models/decoder_plan.h"
#include "models/layers/projection.h"

namespace octavo {

class Mlp {
 public:
  // `prefix`: "model.layers.3.mlp".
  Mlp(const MlpPlan& plan, int hidden, const std::string& prefix, WeightSource& source);

  // x: [T, hidden]. Returns x + mlp(norm(x)).
  mx::array forward(const mx::array& x, const NormSpec& norm, KernelPath path) const;

 private:
  Activation activation_;
  Projection gate_, up_, down_;
};

}  // namespace octavo
