// decoder_model.h - a decoder built from a DecoderPlan. Engine thread only.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/decoder_plan.h"
#include "models/layers/divided_linear.h"
#include "models/layers/per_layer_input.h"
#include "models/layers/sublayer.h"
#include "models/stage_range.h"
#include "models/weight_source.h"

namespace octavo {

// Rows of an image in a step.
struct PlacedRows {
  int first = 0;   // the step's rows [first, first + rows.shape(0))
  mx::array rows;  // [count, parts * hidden] in the model's dtype; see VisionPlan::row_parts()
};

// The input of the layers, and of each later stage.
struct Embedded {
  mx::array rows;                      // [T, hidden] in the model's dtype
  std::optional<mx::array> per_layer;  // ForwardContext::per_layer
  // Images with further parts: part i is added to their rows after layer i - 1.
  std::vector<PlacedRows> images = {};
};

class DecoderModel {
 public:
  // Loads every weight of the plan, or of one stage. With a share of the source that is not whole,
  // only this rank's part of the outputs; `ranks` gathers them, and must outlive the model.
  DecoderModel(DecoderPlan plan, DType dtype, WeightSource& source,
               std::optional<StageRange> stage = std::nullopt, RankExchange* ranks = nullptr);

  const DecoderPlan& plan() const { return plan_; }
  DType dtype() const { return dtype_; }
  const StageRange& stage() const { return stage_; }
  // Null if the model does not score.
  std::shared_ptr<const ScoreHead> score_head() const { return score_head_; }
  bool draws() const { return stage_.draws(plan_); }

  // tokens: [T] int32. `lora`: as in forward(). `images` are in the order of their rows. Their first
  // parts replace the rows of the tokens there, and are not multiplied by the plan's embedding_scale.
  // Those tokens must be 0: only PerLayerRows, which was trained with padding in their place, uses
  // them.
  Embedded embed(const mx::array& tokens, KernelPath path, const LoraStep* lora = nullptr,
                 std::span<const PlacedRows> images = {}) const;
  // The same for an encoder. positions, types: [T] int32; no types stand for 0.
  Embedded embed_encoded(const mx::array& tokens, const mx::array& positions,
                         const std::optional<mx::array>& types, KernelPath path) const;

  // Runs the stage's layers over one flat batch, writes its K and V, and returns the hidden rows [T,
  // hidden], before the final norm. block_tables: by cache group, that of the states last. `lora`:
  // null if no row has an adapter.
  mx::array forward(const Embedded& embedded, const BatchLayout& layout,
                    std::span<const mx::array> block_tables, KvStore& kv, KernelPath path,
                    const LoraStep* lora = nullptr) const;

  // hidden: [R, hidden] of forward(), only the rows that need logits. Applies the final norm.
  // Returns [R, vocab] float32; see RankExchange::gather_at_first for ranks other than 0. `lora`:
  // LoraStep::head().
  mx::array logits(const mx::array& hidden, KernelPath path,
                   std::optional<LoraOptions> lora = std::nullopt) const;

  // The multi-token prediction layer, if the plan has one.
  // hidden: [T, hidden] of forward(); next_tokens: [T] int32, the token after each row's. Writes
  // the layer's K and V and returns its rows [T, hidden], before their norm. A token that stands for a
  // row of an image counts as itself: predictions are only guesses.
  mx::array predict(const mx::array& hidden, const mx::array& next_tokens,
                    const BatchLayout& layout, std::span<const mx::array> block_tables, KvStore& kv,
                    KernelPath path) const;
  // rows: [R, hidden] of predict(), only the rows that need logits. Returns [R, vocab] float32:
  // the logits of the token after the next one.
  mx::array predicted_logits(const mx::array& rows, KernelPath path) const;

  // hidden: [R, hidden] of forward(), only the rows to return. Returns them after the final norm, if
  // there is one, in float32.
  mx::array final_rows(const mx::array& hidden, KernelPath path) const;

 private:
  // One step on the residual stream (HalfPlan).
  struct Half {
    std::optional<NormSpec> norm_in;
    std::unique_ptr<Sublayer> work;
    std::optional<NormSpec> norm_out;
    std::optional<NormSpec> norm_after = {};
    float out_scale = 1;
    int ends_layer = -1;  // the layer whose last half this is
  };

  struct Mtp {
    NormSpec embedding_norm;
    NormSpec hidden_norm;
    NormSpec norm;
    DividedLinear projection;  // [hidden, 2 * hidden]
    std::vector<Half> halves;
  };

  // The tables of an encoder beside that of tokens.
  struct EncoderTables {
    std::optional<Weight> positions;
    std::optional<Weight> types;
    std::optional<NormSpec> norm;
  };

  std::optional<Weight> load_head(WeightSource& source) const;
  EncoderTables load_encoder_tables(WeightSource& source) const;
  void load_layer(int layer, WeightSource& source);
  void load_mtp(WeightSource& source);
  NormSpec load_norm(const std::string& name, WeightSource& source) const;

  Half load_half(const HalfPlan& names, const std::string& layer, std::unique_ptr<Sublayer> work,
                 WeightSource& source) const;
  // Both return null for an AbsentPlan. `index`: of the layer's pages.
  std::unique_ptr<Sublayer> load_mixer(const LayerPlan& layer, int index, const std::string& prefix,
                                       WeightSource& source) const;
  // `at`: the layer's name with a dot, "model.layers.3."; `index`: -1 for the multi-token prediction
  // layer, which adapters do not change
  std::unique_ptr<Sublayer> load_ffn(const LayerPlan& layer, int index, const std::string& at,
                                     WeightSource& source) const;
  std::optional<BatchLayout> near_layout(const BatchLayout& layout) const;
  ForwardContext context_of(const BatchLayout& layout, std::span<const mx::array> block_tables,
                            KvStore& kv, KernelPath path) const;
  mx::array add_image_parts(const Embedded& embedded, int layer, const mx::array& x,
                            KernelPath path) const;
  mx::array run_half(const Half& half, const mx::array& x, ForwardContext& context) const;
  mx::array logits_after(const NormSpec& last, const mx::array& rows, KernelPath path,
                         std::optional<LoraOptions> lora = std::nullopt) const;

  DecoderPlan plan_;
  DType dtype_;
  StageRange stage_;
  RankExchange* ranks_;
  std::vector<mx::array> ropes_;                     // [pairs] float32 each
  std::vector<std::optional<mx::array>> rope_axes_;  // [pairs] int32 each, or none
  std::optional<Weight> embeddings_;                 // StageRange::has_embeddings
  std::optional<EncoderTables> encoder_;
  int window_after_ = 0;  // of the layers that have one
  std::optional<PerLayerRows> per_layer_rows_;
  std::vector<Half> halves_;            // per layer: mixer, feed-forward, per-layer input
  std::optional<NormSpec> final_norm_;  // of the last stage, if the plan has one
  // Unset without logits, and if tied to the embeddings and whole.
  std::optional<Weight> lm_head_;
  std::optional<Mtp> mtp_;
  std::shared_ptr<const ScoreHead> score_head_;
};

}  // namespace octavo
