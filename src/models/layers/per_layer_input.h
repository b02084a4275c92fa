// per_layer_input.h - the additional token embedding of each layer (PerLayerInputPlan).
#pragma once

#include <string>

#include "kernels/linear.h"
#include "models/decoder_plan.h"
#include "models/layers/sublayer.h"
#include "models/weight_source.h"

namespace octavo {

// Computes the rows of all layers, concatenated.
class PerLayerRows {
 public:
  PerLayerRows(const PerLayerInputPlan& plan, const DecoderPlan& model, WeightSource& source);

  // tokens: [T] int32   embedded: [T, hidden], the model's input. Returns [T, layers * width].
  mx::array rows(const mx::array& tokens, const mx::array& embedded, KernelPath path) const;

 private:
  PerLayerInputPlan plan_;
  Weight table_;
  Weight projection_;
  NormSpec norm_;
};

// The sublayer after a layer's mixer and feed-forward.
class PerLayerInput : public Sublayer {
 public:
  // `prefix`: the layer's, with a dot: "model.layers.3."
  PerLayerInput(const PerLayerInputPlan& plan, int hidden, int layer, const std::string& prefix,
                WeightSource& source);

  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  int first_;  // this layer's columns
  Weight gate_, projection_;
};

}  // namespace octavo
