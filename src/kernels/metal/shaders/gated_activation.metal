// gated_activation.metal - activation(gate) * up, or activation(gate), element by element.
//
// Layout: row_params.h; grid (tiles of a row, rows). No threadgroup memory.
// Limit: bandwidth, 3 * cols * sizeof(T) per row.
#include "kernels/metal/shaders/activations.msl"
#include "kernels/metal/row_params.h"

using namespace octavo::metal;

constant int kActivation [[function_constant(0)]];
constant bool kHasUp [[function_constant(1)]];

template <typename T>
[[kernel]] void gated_activation(
    const device T* gate [[buffer(0)]],
    const device T* up [[buffer(1), function_constant(kHasUp)]],
    device T* out [[buffer(2)]],
    constant GatedActivationParams& params [[buffer(3)]],
    uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  gate += ulong(tile.y) * params.cols;
  if (kHasUp) up += ulong(tile.y) * params.up_stride + params.up_first;
  out += ulong(tile.y) * params.cols;
  const int first = tile.x * kRowColumns;
  const int end = min(first + kRowColumns, params.cols);
  for (int i = first + int(thread_index); i < end; i += kTileThreads)
    out[i] = T(activate(kActivation, float(gate[i]), kHasUp ? float(up[i]) : 1.0f));
}
