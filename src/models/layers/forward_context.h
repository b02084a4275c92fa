// forward_context.h - what every layer of one step needs besides its input.
#pragma once

#include <optional>
#include <span>

#include "kernels/batch_layout.h"
#include "models/kv_store.h"

namespace octavo {

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

}  // namespace octavo
