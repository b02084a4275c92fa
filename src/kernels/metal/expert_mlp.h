// expert_mlp.h (metal) - the launches of a mixture of experts.
#pragma once

#include <optional>

#include "kernels/metal/linear.h"

namespace octavo::metal {

struct ExpertMlpCall {
  mx::array x;        // [T, hidden]
  mx::array ids;      // [T, top_k] int32
  mx::array weights;  // [T, top_k] float32
  int experts = 0;
  LinearLayer gate, up, down;
  Activation activation = Activation::kSilu;
  std::optional<mx::array> shared = {}, shared_gate = {}, residual = {};
  mx::array out;  // [T, hidden], allocated
};

// Sorts the (token, expert) pairs by expert and multiplies tiles of rows that share an expert. The
// bits of a pair's product do not depend on the other pairs.
void expert_mlp(const ExpertMlpCall& call, Encoder& encoder);

}  // namespace octavo::metal
