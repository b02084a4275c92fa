// mamba2.h - a Mamba-2 layer: projection, causal convolution, recurrence, gated norm.
#pragma once

#include <string>

#include "kernels/causal_conv.h"
#include "kernels/mamba2.h"
#include "kernels/norm.h"
#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/sublayer.h"

namespace octavo {

class Mamba2Mixer : public Sublayer {
 public:
  // `prefix`: the module's name in the checkpoint, "model.layers.3.mamba".
  Mamba2Mixer(const Mamba2Plan& plan, const DecoderPlan& model, int layer,
              const std::string& prefix, WeightSource& source);

  // Writes the layer's states.
  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  Mamba2Plan plan_;
  int layer_;
  DividedLinear input_;  // rows: z, x, b, c, dt
  ConvWeights conv_;
  Mamba2Weights weights_;
  NormSpec norm_;
  DividedLinear output_;
};

}  // namespace octavo
