// sublayer.h - one half of a layer: a mixer (attention and its kin) or a feed-forward.
#pragma once

#include <optional>
#include <span>

#include "kernels/batch_layout.h"
#include "kernels/norm.h"
#include "models/kv_store.h"

namespace octavo {

// What every layer of one step needs besides its input.
struct ForwardContext {
  const BatchLayout& layout;
  std::span<const mx::array> block_tables;  // by cache group, the states' last: [S, columns] int32
  std::span<const mx::array> ropes;         // by DecoderPlan::ropes: [pairs] float32
  std::optional<mx::array> per_layer;       // [T, layers * width], PerLayerInputPlan
  KvStore& kv;
  KernelPath path;

  const mx::array& table(int layer) const {
    const int group = kv.plan().places[static_cast<size_t>(layer)].group;
    return block_tables[static_cast<size_t>(group)];
  }
};

// What a half does around its own work, so that its first and last products can take it over.
struct Surroundings {
  std::optional<NormSpec> norm;  // of the input
  bool add_input = true;         // returns x + f(norm(x)), else f(norm(x))
};

class Sublayer {
 public:
  virtual ~Sublayer() = default;

  // x: [T, hidden], as is the result.
  virtual mx::array forward(const mx::array& x, const Surroundings& around,
                            ForwardContext& context) const = 0;
};

}  // namespace octavo
