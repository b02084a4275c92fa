// sublayer.h - one part of a layer: a mixer (attention or a recurrence) or a feed-forward.
#pragma once

#include <optional>
#include <span>

#include "kernels/batch_layout.h"
#include "kernels/norm.h"
#include "models/adapters/adapter_memory.h"
#include "models/kv_store.h"
#include "models/plans/attention_plan.h"
#include "models/rank_exchange.h"

namespace octavo {

// Inputs of a step that all layers share.
struct ForwardContext {
  const BatchLayout& layout;
  std::span<const mx::array>
      block_tables;                  // by cache group, that of the states last: [S, columns] int32
  std::span<const mx::array> ropes;  // by DecoderPlan::ropes: [pairs] float32
  std::span<const std::optional<mx::array>> rope_axes;  // by rope: [pairs] int32, RopePlan::axes
  std::optional<mx::array> per_layer;                   // [T, layers * width], PerLayerInputPlan
  KvStore& kv;
  KernelPath path;
  const LoraStep* lora = nullptr;  // null: no row of the step has an adapter
  RankExchange* ranks = nullptr;   // null: this machine has all outputs
  // The layout without last_visible, if it has that: for layers in which images are causal.
  std::optional<BatchLayout> causal = {};
  // The layout with last_visible no later than AttentionPlan::window_after allows, if a layer has that.
  std::optional<BatchLayout> near = {};

  const BatchLayout& layout_of(const AttentionPlan& plan) const {
    if (near && plan.window_after > 0) return *near;
    return causal && !plan.sees_later ? *causal : layout;
  }
  const mx::array& table(int layer) const {
    const int group = kv.plan().places[static_cast<size_t>(layer)].group;
    return block_tables[static_cast<size_t>(group)];
  }
};

// The norm and the residual around a sublayer, passed in so that they can be fused into its first
// and last products.
struct Surroundings {
  std::optional<NormSpec> norm;  // of the input
  bool add_input = true;         // true: returns x + f(norm(x)); false: f(norm(x))
};

class Sublayer {
 public:
  virtual ~Sublayer() = default;

  // x: [T, hidden]   returns [T, hidden]
  virtual mx::array forward(const mx::array& x, const Surroundings& around,
                            ForwardContext& context) const = 0;
};

}  // namespace octavo
