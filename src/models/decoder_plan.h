// decoder_plan.h - a decoder as data: what a family file fills in from a config, and the layers
// follow. No MLX.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/plans/attention_plan.h"
#include "models/plans/dense_and_experts_plan.h"
#include "models/plans/gated_delta_plan.h"
#include "models/plans/mla_plan.h"
#include "models/plans/mlp_plan.h"
#include "models/plans/moe_plan.h"
#include "models/plans/per_layer_input_plan.h"
#include "models/plans/short_conv_plan.h"
#include "models/rename.h"
#include "models/rope_scaling.h"

namespace octavo {

// How one half of a layer, the mixer or the feed-forward, stands on the residual stream:
// x + scale * norm_out(f(norm_in(x))). A norm without a name is not there.
struct HalfPlan {
  std::string norm_in;  // below the layer's prefix: "input_layernorm"
  std::string norm_out;
};

struct LayerPlan {
  std::variant<AttentionPlan, GatedDeltaPlan, MlaPlan, ShortConvPlan> mixer = AttentionPlan{};
  std::variant<MlpPlan, MoePlan, DenseAndExpertsPlan> ffn = MlpPlan{};
  std::string mixer_name = "self_attn";  // module names below the layer's prefix
  std::string ffn_name = "mlp";
  HalfPlan mixer_half = {"input_layernorm", ""};
  HalfPlan ffn_half = {"post_attention_layernorm", ""};
  std::string scalar;  // name of a number that multiplies the layer's result; empty: none

  // For families all of whose layers are of this kind.
  AttentionPlan& attention() { return std::get<AttentionPlan>(mixer); }
  const AttentionPlan& attention() const { return std::get<AttentionPlan>(mixer); }
  MlpPlan& mlp() { return std::get<MlpPlan>(ffn); }
  const MlpPlan& mlp() const { return std::get<MlpPlan>(ffn); }
  const MoePlan* moe() const;  // the experts, or null: there are none
};

struct DecoderPlan {
  std::string family;  // as users know it: "llama", "qwen3"
  int vocab = 0;
  int hidden = 0;
  int max_context = 0;
  float norm_eps = 0;
  float norm_offset = 0;  // added to every norm's weights: 1 where a checkpoint stores w of (1 + w)
  // mlx-lm's converter adds the offset to the weights it writes. Its checkpoints are known by their
  // convolutions, whose weights it turns to [channels, taps, 1].
  bool mlx_adds_norm_offset = false;
  bool tied_embeddings = false;
  float embedding_scale = 1;
  float residual_scale = 1;  // on what each half of a layer adds
  float logit_scale = 1;
  float final_soft_cap = 0;           // > 0: logits are capped
  std::string prefix = "model";       // of the tensors' names; empty: none
  std::string head_name = "lm_head";  // empty: no logits are wanted
  std::vector<Rename> renames;        // where a checkpoint's names are not Llama's
  std::vector<RopePlan> ropes;
  std::vector<LayerPlan> layers;
  std::optional<PerLayerInputPlan> per_layer_input;  // in every layer, behind its two halves

  // The whole name: "model.norm.weight".
  std::string tensor(const std::string& name) const {
    return prefix.empty() ? name : prefix + "." + name;
  }

  // What each layer keeps in the cache.
  std::vector<CacheSpec> cache_specs(DType dtype, KvFormat format) const;

  uint64_t parameters() const;
  // Memory for weights that are decoded at load, beside what the file's own formats take.
  uint64_t decoded_bytes(DType dtype) const;
  // What each layer makes of a row, in elements, and last what is made for all of them, if
  // anything.
  std::vector<uint64_t> row_elements() const;
  // The widest row that meets a matrix.
  uint64_t widest_input() const;
};

}  // namespace octavo
