// attention.h - softmax attention over pages.
#pragma once

#include <optional>
#include <string>

#include "models/decoder_plan.h"
#include "models/layers/forward_context.h"
#include "models/layers/projection.h"

namespace octavo {

class Attention {
 public:
  // `prefix`: the module's name in the checkpoint, "model.layers.3.self_attn".
  Attention(const DecoderPlan& model, int layer, const std::string& prefix, WeightSource& source);

  // x: [T, hidden]. Writes the layer's pages, returns x + attention(norm(x)).
  mx::array forward(const mx::array& x, const NormSpec& norm, ForwardContext& context) const;

 private:
  // [T, heads, head_dim] of a projected q or k: normed per head where the family does, then
  // rotated.
  mx::array prepare(const mx::array& projected, int heads, const std::optional<mx::array>& norm,
                    const ForwardContext& context) const;

  AttentionPlan plan_;
  float norm_eps_;
  float rope_magnitude_ = 1;
  int layer_;
  Projection q_, k_, v_, output_;
  std::optional<mx::array> q_norm_, k_norm_;
};

}  // namespace octavo
