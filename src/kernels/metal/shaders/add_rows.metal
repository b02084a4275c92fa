// add_rows.metal - (x + scale * y) * out_scale, element by element.
//
// Layout: row_params.h; grid (tiles of a row, rows). No threadgroup memory.
// Limit: bandwidth, 3 * cols * sizeof(T) per row.
#include "kernels/metal/shaders/residual_sum.msl"
#include "kernels/metal/row_params.h"

using namespace octavo::metal;

template <typename T>
[[kernel]] void add_rows(
    const device T* x [[buffer(0)]],
    const device T* y [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant AddRowsParams& params [[buffer(3)]],
    uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  const ulong row = ulong(tile.y) * params.cols;
  const int first = tile.x * kRowColumns;
  const int end = min(first + kRowColumns, params.cols);
  for (int i = first + int(thread_index); i < end; i += kTileThreads) {
    const float sum = fma(float(y[row + i]), params.scale, float(x[row + i]));
    out[row + i] = rounded_sum<T>(sum * params.out_scale);
  }
}
