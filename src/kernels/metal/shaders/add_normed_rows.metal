// add_normed_rows.metal - (x + scale * norm(y)) * out_scale, row by row.
//
// One threadgroup of kNormThreads per row, sums as in norm.metal. Two passes over y (three for
// layer norm), which stays in the cache, and one over x.
// Memory: 32 bytes of threadgroup memory. Limit: bandwidth, 3 * cols * sizeof(T) per row.
#include "kernels/metal/norm_params.h"
#include "kernels/metal/shaders/residual_sum.msl"
#include "kernels/metal/row_params.h"
#include "kernels/metal/shaders/threads.msl"

using namespace octavo::metal;

constant bool kIsLayer [[function_constant(0)]];
constant bool kHasBias [[function_constant(1)]];

template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(kNormThreads)]] void add_normed_rows(
    const device T* x [[buffer(0)]],
    const device T* y [[buffer(1)]],
    const device W* weight [[buffer(2)]],
    const device W* bias [[buffer(3), function_constant(kHasBias)]],
    device T* out [[buffer(4)]],
    constant AddRowsParams& params [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup float parts[kNormThreads / kSimdWidth];
  const int cols = params.cols;
  x += ulong(row) * cols;
  y += ulong(row) * cols;
  out += ulong(row) * cols;
  float mean = 0;
  if (kIsLayer) {
    float sum = 0;
    for (int i = thread_index; i < cols; i += kNormThreads) sum += float(y[i]);
    mean = threads_sum<kNormThreads>(sum, parts, thread_index) / float(cols);
  }
  float squares = 0;
  for (int i = thread_index; i < cols; i += kNormThreads) {
    const float value = float(y[i]) - mean;
    squares = fma(value, value, squares);
  }
  const float variance = threads_sum<kNormThreads>(squares, parts, thread_index) / float(cols);
  const float factor = 1.0f / precise::sqrt(variance + params.eps);
  for (int i = thread_index; i < cols; i += kNormThreads) {
    float value = (float(y[i]) - mean) * factor * float(weight[i]);
    if (kHasBias) value += float(bias[i]);
    out[i] = rounded_sum<T>(fma(value, params.scale, float(x[i])) * params.out_scale);
  }
}
