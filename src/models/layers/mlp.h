// mlp.h - the dense MLP.
#pragma once

#include <optional>
#include <string>

#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/sublayer.h"

namespace octavo {

class Mlp : public Sublayer {
 public:
  // `prefix`: "model.layers.3.mlp". `layer`: whose adapters apply; -1: none do.
  Mlp(const MlpPlan& plan, int hidden, const std::string& prefix, WeightSource& source,
      int layer = -1);

  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  Activation activation_;
  bool squares_;
  int intermediate_;
  int layer_;
  std::optional<Projection> gate_;  // unset: MlpPlan::squares
  Projection up_;
  DividedLinear down_;
};

}  // namespace octavo
