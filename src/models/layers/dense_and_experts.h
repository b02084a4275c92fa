// dense_and_experts.h - a dense MLP and a mixture of experts in parallel.
#pragma once

#include <string>

#include "kernels/expert_mlp.h"
#include "models/decoder_plan.h"
#include "models/layers/mlp.h"
#include "models/layers/sublayer.h"

namespace octavo {

class DenseAndExperts : public Sublayer {
 public:
  // The tensors are directly in the layer. `at`: the layer's name with a dot, "model.layers.3."
  // `layer`: whose adapters apply; -1: none do.
  DenseAndExperts(const DenseAndExpertsPlan& plan, const DecoderPlan& model, const std::string& at,
                  WeightSource& source, int layer);

  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  Routing route(const mx::array& x, KernelPath path, const LoraStep* lora) const;

  ExpertChoice choice_;
  int intermediate_;  // of each expert
  int layer_;
  Mlp dense_;
  ExpertMlp experts_;
  Weight router_;
  NormSpec router_norm_;
  mx::array expert_scales_;  // [experts] float32
  NormSpec dense_norm_out_, experts_norm_in_, experts_norm_out_;
};

}  // namespace octavo
