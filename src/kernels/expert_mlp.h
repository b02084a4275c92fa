// expert_mlp.h - the gated MLPs of a mixture of experts; each token uses top_k of them.
#pragma once

#include <optional>

#include "kernels/expert_routing.h"
#include "kernels/lora.h"
#include "kernels/types/activation_kind.h"
#include "kernels/weights/expert_stack.h"

namespace octavo {

// One linear layer per expert.
struct ExpertProjection {
  ExpertStack weight;
  std::optional<mx::array> bias;  // [experts, weight.rows]
};

struct ExpertMlp {
  ExpertProjection gate;  // [experts, inner, hidden]
  ExpertProjection up;    // like the gate; either all biases are present, of one dtype, or none
  ExpertProjection down;  // [experts, hidden, inner]
  Activation activation = Activation::kSilu;
};

struct ExpertOptions {
  std::optional<mx::array> shared;       // [T, hidden] of x's dtype: the shared expert's output
  std::optional<mx::array> shared_gate;  // [T, 1] float32: shared is multiplied by its sigmoid
  std::optional<mx::array> residual;     // [T, hidden] of x's dtype, added last
  // Adapters, added to each product before its bias. Not on Metal.
  std::optional<ExpertLora> lora;
  KernelPath path = KernelPath::kNative;
};

// x: [T, hidden] contiguous. Returns [T, hidden] of x's dtype: residual + (the sum, in the order of
// experts, of weight * down(activation(gate(x)) * up(x)), + shared). Sums are float32 and rounded
// once at the end; the input of `down` is rounded to x's dtype. A token's bits do not depend on
// other tokens or their adapters, nor does an expert's output depend on other experts.
mx::array expert_mlp(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
                     const ExpertOptions& options = {});

namespace reference {
mx::array expert_mlp(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
                     const ExpertOptions& options);
}

}  // namespace octavo
