// adapter_memory.h - the LoRA adapters that steps can use, in slots allocated at start-up. Engine
// thread only.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernels/lora.h"
#include "models/adapters/adapter_targets.h"
#include "models/adapters/lora_weights.h"

namespace octavo {

class AdapterMemory {
 public:
  // All slots are empty.
  AdapterMemory(AdapterTargets targets, DType dtype, int slots, int max_rank);

  // Replaces the adapter of a slot that no step in flight reads. `weights` come from read_lora() with
  // the same targets and limits.
  void write(int slot, const LoraWeights& weights);

  const AdapterTargets& targets() const { return targets_; }
  uint64_t bytes() const;  // of all slots
  const LoraMatrices& matrices(int projection) const {
    return matrices_[static_cast<size_t>(projection)];
  }
  // Whether the adapter of a slot may change the output matrix. If that is the embeddings, some
  // adapters change only what rows begin with.
  bool changes_head(int32_t slot) const {
    return targets_.head != targets_.embedding || tied_slots_[static_cast<size_t>(slot)];
  }

 private:
  // The slot of an expert's matrices (AdaptedProjection::experts).
  int matrix_slot(int projection, int slot, int expert) const;

  AdapterTargets targets_;
  std::vector<LoraMatrices> matrices_;  // by AdapterTargets::projections
  std::vector<bool> tied_slots_;        // by slot: LoraModule::changes_head of the embeddings
};

// The adapters of a step, for the products of its layers.
class LoraStep {
 public:
  // `slots`: by row, -1: none. `memory` must outlive this object.
  LoraStep(std::span<const int32_t> slots, const AdapterMemory& memory)
      : rows_(slots), memory_(memory) {}

  LoraOptions embedding() const { return options(std::array{memory_.targets().embedding}); }
  LoraOptions qkv(int layer) const { return options(of(layer).qkv); }
  LoraOptions output(int layer) const { return options(std::array{of(layer).output}); }
  LoraOptions gate_and_up(int layer) const {
    return options(std::array{of(layer).gate, of(layer).up});
  }
  LoraOptions up(int layer) const { return options(std::array{of(layer).up}); }
  LoraOptions down(int layer) const { return options(std::array{of(layer).down}); }
  LoraOptions router(int layer) const { return options(std::array{of(layer).router}); }
  LoraOptions shared_gate(int layer) const { return options(std::array{of(layer).shared_gate}); }
  // Nothing if adapters cannot change the experts of the layer.
  std::optional<ExpertLora> experts(int layer) const;
  // Of these rows of the step.
  LoraOptions head(std::span<const int32_t> rows) const;

 private:
  const LayerTargets& of(int layer) const {
    return memory_.targets().layers[static_cast<size_t>(layer)];
  }
  LoraOptions options(std::span<const int> projections) const;

  LoraRows rows_;
  const AdapterMemory& memory_;
};

}  // namespace octavo
