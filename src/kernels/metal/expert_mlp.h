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

// The halves of expert_mlp(), with its bits.
struct ExpertActivationsCall {
  mx::array x;    // [T, hidden]
  mx::array ids;  // [T, top_k] int32
  int experts = 0;
  LinearLayer gate, up;
  Activation activation = Activation::kSilu;
  mx::array out;     // [pairs, inner], allocated: sorted by expert
  mx::array places;  // [pairs] int32, allocated: each pair's row of out
};
struct ExpertOutputsCall {
  mx::array inner;    // [T, top_k, inner]
  mx::array ids;      // [T, top_k] int32
  mx::array weights;  // [T, top_k] float32
  int experts = 0;
  LinearLayer down;
  std::optional<mx::array> shared = {}, shared_gate = {}, residual = {};
  mx::array out;  // [T, down rows], allocated
};

void expert_activations(const ExpertActivationsCall& call, Encoder& encoder);
void expert_outputs(const ExpertOutputsCall& call, Encoder& encoder);

// Sorts the (token, expert) pairs by expert and multiplies tiles of rows that share an expert. The
// bits of a pair's product do not depend on the other pairs.
void expert_mlp(const ExpertMlpCall& call, Encoder& encoder);

}  // namespace octavo::metal
