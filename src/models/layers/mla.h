// mla.h - multi-head latent attention in absorbed form: queries are projected into the latent
// space, attention runs over latent rows, and its result is projected to values head by head.
#pragma once

#include <optional>
#include <string>

#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/sublayer.h"

namespace octavo {

class Mla : public Sublayer {
 public:
  // `prefix`: the module's name in the checkpoint, "model.layers.3.self_attn". dtype: of the
  // model's rows and of decoded weights.
  Mla(const MlaPlan& plan, const DecoderPlan& model, int layer, DType dtype,
      const std::string& prefix, WeightSource& source);

  // Writes the layer's pages.
  mx::array forward(const mx::array& x, const Surroundings& around,
                    ForwardContext& context) const override;

 private:
  // The two halves of kv_b_proj.
  struct LatentWeights {
    Weight keys;    // W_k[h]^T: [heads * kv_rank, nope_dim]
    Weight values;  // W_v[h]: [heads * v_dim, kv_rank]
  };
  // Of this rank's heads.
  static LatentWeights load_latent(const MlaPlan& plan, DType dtype, const std::string& prefix,
                                   WeightSource& source);

  // [T, heads, q_dim]
  mx::array queries(const mx::array& x, const Surroundings& around, KernelPath path) const;

  MlaPlan plan_;  // with this rank's heads
  int outputs_;   // of attention, on all ranks together
  int layer_;
  float rope_magnitude_;
  std::optional<Projection> q_down_;  // with q_rank
  std::optional<NormSpec> q_norm_;
  Projection q_up_;
  Projection latent_;
  mx::array latent_norm_;
  LatentWeights weights_;
  DividedLinear output_;
};

}  // namespace octavo
