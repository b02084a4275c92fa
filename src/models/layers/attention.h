// attention.h - softmax attention over pages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/qkv_write.h"
#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/sublayer.h"

namespace octavo {

class Attention : public Sublayer {
 public:
  // `prefix`: the module's name in the checkpoint, "model.layers.3.self_attn".
  Attention(const AttentionPlan& plan, const DecoderPlan& model, int layer,
            const std::string& prefix, WeightSource& source);

  // Writes the layer's pages, unless it shares those of another layer.
  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  QkvOptions qkv_options(const ForwardContext& context) const;
  int group_width() const;

  AttentionPlan plan_;  // with this rank's heads
  int outputs_;         // of attention, on all ranks together
  float norm_eps_;
  float rope_magnitude_ = 1;
  int layer_;
  std::vector<Projection> qkv_;
  DividedLinear output_;
  std::optional<mx::array> q_norm_, k_norm_;
  std::optional<mx::array> sinks_;  // [heads] float32
};

}  // namespace octavo
