// lora.h (metal) - LoRA adapters of products: linear.metal multiplies A with the rows of each slot,
// lora_expand.metal multiplies the results with B, and the products add the sums.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/lora_plan.h"
#include "kernels/lora_shape.h"
#include "kernels/metal/encoder.h"
#include "kernels/metal/lora_tables.h"

namespace octavo::metal {

struct LoraLayer {
  LoraShape shape;
  mx::array a;
  mx::array b;
};

struct LoraCall {
  std::shared_ptr<const LoraPlan> plan;
  std::shared_ptr<LoraTables> tables;
  std::vector<std::optional<LoraLayer>> layers;  // one per layer of the call; none: no adapters
};

// What the products add.
struct LoraSums {
  mx::array sums;           // [rows with an adapter, columns] float32
  mx::array places;         // [rows] int32: a row of sums, or -1
  std::vector<int> firsts;  // by layer: its first column, or -1
};

// x: [rows, inputs], normed.
LoraSums lora_sums(const mx::array& x, const LoraCall& call, Encoder& encoder);

}  // namespace octavo::metal
