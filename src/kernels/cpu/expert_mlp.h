// expert_mlp.h (cpu) - the gated MLPs of a mixture of experts over raw memory. No MLX.
#pragma once

#include <memory>

#include "kernels/cpu/expert_lora.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {

// One matrix per expert: expert e's starts at data + e * layout.bytes().
struct ExpertMatrix {
  PackedLayout layout = {};
  const std::byte* data = nullptr;
  const void* bias = nullptr;  // [experts, layout.rows] or null

  PackedView view(int64_t expert) const { return {layout, data + expert * layout.bytes()}; }
};

struct ExpertMlpArgs {
  const void* x = nullptr;        // [tokens, hidden], contiguous
  DType dtype = DType::kFloat32;  // of x, shared, residual and out
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t top_k = 0;
  const int32_t* ids = nullptr;    // [tokens, top_k]
  const float* weights = nullptr;  // [tokens, top_k]
  ExpertMatrix gate = {};          // hidden -> inner
  ExpertMatrix up = {};            // hidden -> inner
  ExpertMatrix down = {};          // inner -> hidden
  DType bias_dtype = DType::kFloat32;
  Activation activation = Activation::kSilu;
  std::shared_ptr<const ExpertLoraArgs> lora = nullptr;  // null: no adapters
  const void* shared = nullptr;                          // [tokens, hidden] or null
  const float* shared_gate = nullptr;                    // [tokens] or null
  const void* residual = nullptr;                        // [tokens, hidden] or null
  void* out = nullptr;                                   // [tokens, hidden]
};

void expert_mlp(const ExpertMlpArgs& args);

// The halves of expert_mlp(), with its bits. Matrices may be parts of the outputs. No adapters.
// Uses neither `down` nor what is added to its outputs. out: [tokens, top_k, gate rows].
void expert_activations(const ExpertMlpArgs& args);
// Uses neither `gate` nor `up`. x: [tokens, top_k, down columns]; shared, residual and out:
// [tokens, down rows].
void expert_outputs(const ExpertMlpArgs& args);

// Upper bound of expert_mlp()'s scratch memory.
struct ExpertMlpShape {
  int64_t experts;
  int64_t top_k;
  int64_t hidden;
  int64_t inner;
};
int64_t expert_mlp_scratch_bytes(const ExpertMlpShape& shape, int64_t tokens, int threads);

}  // namespace octavo::cpu
