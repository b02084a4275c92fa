// embedding_lora.h (cpu) - LoRA adapters of an embedding table, which is a matrix [tokens, hidden]. No
// MLX.
#pragma once

#include <span>
#include <vector>

#include "kernels/lora_shape.h"

namespace octavo::cpu {

// One thread's.
class EmbeddingLora {
 public:
  // `layer` must outlive it.
  explicit EmbeddingLora(const LoraView& layer)
      : layer_(layer),
        sums_(static_cast<size_t>(layer.shape.inputs)),
        factors_(static_cast<size_t>(layer.shape.inputs)) {}

  // row: [hidden]. Adds scale * B[token] A: the numbers of a merged table (docs/arithmetic.md), before
  // it is rounded.
  void add(int32_t slot, int64_t token, std::span<float> row);

 private:
  const LoraView& layer_;
  std::vector<float> sums_;
  std::vector<float> factors_;
};

}  // namespace octavo::cpu
