// decoder_model.h - a decoder that follows its plan. Engine thread only.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/decoder_plan.h"
#include "models/layers/attention.h"
#include "models/layers/mlp.h"

namespace octavo {

class DecoderModel {
 public:
  // Loads every weight the plan names.
  DecoderModel(DecoderPlan plan, DType dtype, WeightSource& source);

  const DecoderPlan& plan() const { return plan_; }
  DType dtype() const { return dtype_; }

  // tokens: [T] int32. Returns [T, hidden] in the model's dtype; rows of other origin (images,
  // adapters' soft prompts) may stand in for them.
  mx::array embed(const mx::array& tokens, KernelPath path) const;

  // Runs the layers over one flat batch, writes its K and V, and returns the hidden rows [T,
  // hidden], before the final norm.
  mx::array forward(const mx::array& embedded, const BatchLayout& layout,
                    std::span<const mx::array> block_tables, KvStore& kv, KernelPath path) const;

  // hidden: [R, hidden] of forward(), only the rows whose logits are wanted. Normed here. Returns
  // [R, vocab] float32.
  mx::array logits(const mx::array& hidden, KernelPath path) const;

  // hidden: [R, hidden] of forward(), only the rows that are wanted. Returns them normed, float32.
  mx::array final_rows(const mx::array& hidden, KernelPath path) const;

 private:
  struct Layer {
    mx::array attention_norm;
    Attention attention;
    mx::array mlp_norm;
    Mlp mlp;
  };

  DecoderPlan plan_;
  DType dtype_;
  std::vector<mx::array> ropes_;  // [pairs] float32 each
  Weight embeddings_;
  std::vector<Layer> layers_;
  mx::array final_norm_;
  std::optional<Weight> lm_head_;  // none: tied, the embeddings serve, or no logits are wanted
};

}  // namespace octavo
