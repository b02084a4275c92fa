// lora_cases.h - for the tests of LoRA adapters on simulated Metal: layers with adapters and calls of them.
#pragma once

#include <vector>

#include "kernels/linear.h"
#include "kernels/testing/lora.h"
#include "metal/linear_support.h"

namespace octavo::metal_linear {

// Slots of four adapters, and an empty one.
inline const std::vector<int> kLoraRanks = {16, 5, 0, 24, 8};

struct LoraCase {
  std::vector<Projection> layers;
  std::vector<LoraMatrices> lora;
};

inline LoraCase random_lora_case(std::mt19937& random, DType dtype, bool is_quantised, int outputs,
                                 int inputs) {
  LoraCase made;
  for (int i = 0; i < 3; ++i) {
    made.layers.push_back({is_quantised
                               ? random_affine(random, outputs, inputs, 4, 64, DType::kFloat32)
                               : random_dense(random, outputs, inputs, dtype),
                           random_array(random, {outputs})});
    made.lora.push_back(random_lora(random, kLoraRanks, inputs, outputs, dtype));
  }
  return made;
}

// kHead: as the product that gives logits.
enum class LoraForm { kJoined, kGated, kPlain, kHead };

inline mx::array run(const LoraCase& made, LoraForm form, const mx::array& x,
                     const std::vector<int32_t>& slots, KernelPath path = KernelPath::kNative) {
  LinearOptions options;
  options.path = path;
  options.norm = NormSpec{.weight = mx::ones({x.shape(-1)}, x.dtype()), .eps = 1e-5f};
  const LoraRows rows(slots);
  if (form == LoraForm::kJoined) {
    options.lora = LoraOptions{rows, {&made.lora[0], nullptr, &made.lora[2]}};
    return joined_linear(x, made.layers, options);
  }
  if (form == LoraForm::kGated) {
    options.lora = LoraOptions{rows, {&made.lora[0], &made.lora[1]}};
    return gated_linear(x, made.layers[0], made.layers[1], Activation::kSilu, options);
  }
  options.lora = LoraOptions{rows, {&made.lora[0]}};
  options.scale = 0.5f;
  if (form == LoraForm::kHead) {
    options.soft_cap = 10;
    options.out_dtype = mx::float32;
  } else {
    options.bias = made.layers[0].bias;
  }
  return linear(x, made.layers[0].weight, options);
}

}  // namespace octavo::metal_linear
