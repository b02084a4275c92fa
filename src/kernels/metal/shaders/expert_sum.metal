// expert_sum.metal - weighted sum of the expert outputs of a token, in the order of expert ids.
//
// One thread per element. Grid: x columns, y tokens. Memory: none. Limit: bandwidth, top_k floats
// read per element.
#include "kernels/metal/expert_mlp_params.h"
#include "kernels/metal/shaders/numbers.msl"

using namespace octavo::metal;

constant bool kHasShared [[function_constant(0)]];
constant bool kHasSharedGate [[function_constant(1)]];
constant bool kHasResidual [[function_constant(2)]];

// products: [pairs, hidden] by sorted row; places, weights: [tokens, top_k]
template <typename T>
[[kernel]] void expert_sum(
    const device float* products [[buffer(0)]],
    const device int* places [[buffer(1)]],
    const device float* weights [[buffer(2)]],
    const device T* shared [[buffer(3), function_constant(kHasShared)]],
    const device float* shared_gate [[buffer(4), function_constant(kHasSharedGate)]],
    const device T* residual [[buffer(5), function_constant(kHasResidual)]],
    device T* out [[buffer(6)]],
    constant ExpertSumParams& params [[buffer(7)]],
    uint3 place [[thread_position_in_grid]]) {
  const int column = place.x;
  if (column >= params.hidden) return;
  const int token = place.y;
  const int first = token * params.top_k;
  float sum = 0.0f;
  int last = -1;
  for (int taken = 0; taken < params.top_k; ++taken) {
    // Sorted rows ascend with the expert id: the next one is the lowest above the previous.
    int next = 0x7fffffff, choice = 0;
    for (int i = 0; i < params.top_k; ++i) {
      const int row = places[first + i];
      if (row <= last || row >= next) continue;
      next = row;
      choice = i;
    }
    sum = fma(weights[first + choice], products[ulong(next) * params.hidden + column], sum);
    last = next;
  }
  const ulong at = ulong(token) * params.hidden + column;
  if (kHasShared) {
    const float gate = kHasSharedGate ? sigmoid_of(shared_gate[token]) : 1.0f;
    sum = fma(gate, float(shared[at]), sum);
  }
  if (kHasResidual) sum = float(residual[at]) + sum;
  out[at] = T(sum);
}
