// decoder_plan.h - describes a decoder as data; family files fill it in from a config. No MLX.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/types/norm_kind.h"
#include "kernels/types/score_head.h"
#include "models/plans/absent_plan.h"
#include "models/plans/attention_plan.h"
#include "models/plans/dense_and_experts_plan.h"
#include "models/plans/gated_delta_plan.h"
#include "models/plans/mamba2_plan.h"
#include "models/plans/mla_plan.h"
#include "models/plans/mlp_plan.h"
#include "models/plans/moe_plan.h"
#include "models/plans/per_layer_input_plan.h"
#include "models/plans/short_conv_plan.h"
#include "models/quantized/quantization_scheme.h"
#include "models/rename.h"
#include "models/rope_scaling.h"

namespace octavo {

// Norms around one sublayer (mixer or feed-forward): norm_after(x + scale * norm_out(f(norm_in(x)))). An
// empty name means no norm.
struct HalfPlan {
  std::string norm_in;  // relative to the layer's prefix: "input_layernorm"
  std::string norm_out;
  std::string norm_after = {};
};

struct LayerPlan {
  std::variant<AttentionPlan, GatedDeltaPlan, Mamba2Plan, MlaPlan, ShortConvPlan, AbsentPlan>
      mixer = AttentionPlan{};
  std::variant<MlpPlan, MoePlan, DenseAndExpertsPlan, AbsentPlan> ffn = MlpPlan{};
  std::string mixer_name = "self_attn";  // module names relative to the layer's prefix
  std::string ffn_name = "mlp";
  HalfPlan mixer_half = {"input_layernorm", ""};
  HalfPlan ffn_half = {"post_attention_layernorm", ""};
  std::string scalar;  // name of a number that multiplies the layer's result; empty: none

  // Only if the layer is of this kind.
  AttentionPlan& attention() { return std::get<AttentionPlan>(mixer); }
  const AttentionPlan& attention() const { return std::get<AttentionPlan>(mixer); }
  MlpPlan& mlp() { return std::get<MlpPlan>(ffn); }
  const MlpPlan& mlp() const { return std::get<MlpPlan>(ffn); }
  const MoePlan* moe() const;  // null if there are no experts
};

// A multi-token prediction layer: predicts the token after the next one from the final hidden row of
// a position and the embedding of the next token. Embeddings and output matrix are the model's.
struct MtpPlan {
  LayerPlan layer;
  // Full tensor names: the layer's prefix with a dot, the norms of the two inputs, the matrix
  // [hidden, 2 * hidden] that joins them (embedding first), and the norm before the output matrix.
  std::string at;  // "mtp.layers.0."
  std::string embedding_norm;
  std::string hidden_norm;
  std::string projection;
  std::string norm;
};

// What an encoder has besides: its rows see the whole prompt, whatever their positions. Names are
// relative to DecoderPlan::prefix.
struct EncoderPlan {
  std::string positions;   // name of the table of positions; empty: none
  int first_position = 0;  // the row of the table for the first token: 2 in RoBERTa
  int position_rows = 0;
  std::string token_types;  // name of the table of token types; empty: none
  int type_rows = 0;
  std::string norm;  // name of the norm of the embedded rows
};

// The layers that turn a pooled vector into scores: out(norm(activation(dense(x)))). Full names of
// modules; empty: absent.
struct ScoreHeadPlan {
  std::string dense = {};  // [hidden, hidden]
  bool dense_bias = false;
  ScoreActivation activation = ScoreActivation::kNone;
  std::string norm = {};  // a LayerNorm
  bool norm_bias = false;
  float norm_eps = 0;
  std::string out = {};  // [labels, hidden]
  bool out_bias = false;
  int labels = 1;
  // Set: `out` is [out_rows, hidden], and the score is the product of its first row here less that of
  // its second one: the logits of two tokens.
  std::vector<int> rows = {};
  int out_rows = 0;
};

struct DecoderPlan {
  std::string family;  // as users know it: "llama", "qwen3"
  int vocab = 0;
  int hidden = 0;
  int max_context = 0;
  float norm_eps = 0;
  Norm norm_kind = Norm::kRms;
  bool norm_bias = false;  // of all norms, with Norm::kLayer
  float norm_offset = 0;   // added to all norm weights: 1 if the norm multiplies by 1 + w
  // mlx-lm's converter already adds the offset. Its checkpoints are recognised by their convolution
  // weights, stored as [channels, taps, 1].
  bool mlx_adds_norm_offset = false;
  bool tied_embeddings = false;
  float embedding_scale = 1;
  float residual_scale = 1;  // on the result of each sublayer
  float logit_scale = 1;
  float final_soft_cap = 0;           // > 0: logits are soft-capped
  std::string prefix = "model";       // of tensor names; may be empty
  std::string final_norm = "norm";    // empty: none
  std::string head_name = "lm_head";  // empty: no logits
  std::vector<Rename> renames;        // names that differ from Llama's
  QuantizationScheme quantization;    // of the checkpoint
  std::vector<RopePlan> ropes;
  std::vector<LayerPlan> layers;
  std::optional<PerLayerInputPlan> per_layer_input;  // in every layer, after its two sublayers
  std::optional<MtpPlan> mtp = {};                   // only if it is used
  std::optional<EncoderPlan> encoder = {};           // unset: rows see only those before them
  std::optional<ScoreHeadPlan> score = {};           // of a model that scores texts

  // Adds the prefix: "model.norm.weight".
  std::string tensor(const std::string& name) const {
    return prefix.empty() ? name : prefix + "." + name;
  }

  // What each layer keeps in the cache; the multi-token prediction layer comes last.
  std::vector<CacheSpec> cache_specs(DType dtype, KvFormat format) const;

  // The same with the heads of one of several ranks that divide outputs: for the cache. Throws
  // SetupError if there are more ranks than heads.
  DecoderPlan of_rank(int ranks) const;

  uint64_t parameters() const;
  // Additional memory for weights that are decoded at load.
  uint64_t decoded_bytes(DType dtype) const;
  // Intermediate elements per row of each layer; the last entry is for values shared by all layers,
  // if any.
  std::vector<uint64_t> row_elements() const;
  // The widest row that is multiplied by a matrix.
  uint64_t widest_input() const;
};

}  // namespace octavo
