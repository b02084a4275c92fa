// gate_rows.metal - x * gate or x * sigmoid(gate), element by element.
//
// Layout: row_params.h; grid (tiles of a row, rows). No threadgroup memory.
// Limit: bandwidth, 3 * cols * sizeof(T) per row.
#include "kernels/metal/shaders/numbers.msl"
#include "kernels/metal/row_params.h"

using namespace octavo::metal;

constant bool kSigmoid [[function_constant(0)]];

template <typename T>
[[kernel]] void gate_rows(
    const device T* x [[buffer(0)]],
    const device T* gate [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant GateRowsParams& params [[buffer(3)]],
    uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  x += ulong(tile.y) * params.x_stride + params.x_first;
  gate += ulong(tile.y) * params.gate_stride + params.gate_first;
  out += ulong(tile.y) * params.cols;
  const int first = tile.x * kRowColumns;
  const int end = min(first + kRowColumns, params.cols);
  for (int i = first + int(thread_index); i < end; i += kTileThreads) {
    const float factor = float(gate[i]);
    out[i] = T(float(x[i]) * (kSigmoid ? sigmoid_of(factor) : factor));
  }
}
