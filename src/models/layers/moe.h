// moe.h - a mixture of experts: a router, experts, and an optional shared expert.
#pragma once

#include <optional>
#include <string>

#include "kernels/expert_mlp.h"
#include "models/decoder_plan.h"
#include "models/layers/mlp.h"
#include "models/layers/projection.h"
#include "models/layers/sublayer.h"

namespace octavo {

class Moe : public Sublayer {
 public:
  // `prefix`: "model.layers.3.mlp". `layer`: whose adapters apply; -1: none do.
  Moe(const MoePlan& plan, int hidden, const std::string& prefix, WeightSource& source, int layer);

  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  // x: normed rows. Computes in float32, regardless of the model's dtype.
  Routing route(const mx::array& x, KernelPath path, const LoraStep* lora) const;

  ExpertChoice choice_;
  int intermediate_;
  int layer_;
  Projection router_;
  std::optional<mx::array> choice_bias_;  // [experts] float32
  ExpertMlp experts_;
  std::optional<Mlp> shared_;
  std::optional<Weight> shared_gate_;  // [1, hidden]
};

}  // namespace octavo
