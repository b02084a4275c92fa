// short_conv.h - the gated short convolution of LFM2.
#pragma once

#include <string>

#include "kernels/causal_conv.h"
#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/sublayer.h"

namespace octavo {

class ShortConv : public Sublayer {
 public:
  // `prefix`: the module's name in the checkpoint, "model.layers.0.conv".
  ShortConv(const ShortConvPlan& plan, int hidden, int layer, const std::string& prefix,
            WeightSource& source);

  // Writes the layer's state.
  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  ShortConvPlan plan_;
  int layer_;
  DividedLinear input_;  // to b, c and x, concatenated
  ConvWeights conv_;
  DividedLinear output_;
};

}  // namespace octavo
