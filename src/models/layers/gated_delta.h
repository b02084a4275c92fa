// gated_delta.h - linear attention with a gated delta rule: projections, causal convolution,
// recurrence, output gate.
#pragma once

#include <string>
#include <vector>

#include "kernels/causal_conv.h"
#include "kernels/gated_delta.h"
#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/sublayer.h"

namespace octavo {

class GatedDeltaNet : public Sublayer {
 public:
  // `prefix`: the module's name in the checkpoint, "model.layers.3.linear_attn".
  GatedDeltaNet(const GatedDeltaPlan& plan, const DecoderPlan& model, int layer,
                const std::string& prefix, WeightSource& source);

  // Writes the layer's states.
  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  mx::array tiled(const mx::array& values) const;

  GatedDeltaPlan plan_;
  float norm_eps_;
  int layer_;
  DividedLinear inputs_;  // concatenated: q, k, v, z, b, a
  ConvWeights conv_;
  GatedDeltaWeights weights_;
  DividedLinear output_;
};

}  // namespace octavo
