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

// Pairs of a token and an expert are sorted by expert and multiplied
// in tiles of one expert's rows; a pair's product has the bits it would have alone.
void expert_mlp(const ExpertMlpCall& call, Encoder& encoder);

}  // namespace octavo::metal
