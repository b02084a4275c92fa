// norm.metal - RMS and layer norm of rows.
//
// One threadgroup of kNormThreads per row. Thread t sums columns t, t + kNormThreads, ... in order;
// the threads' sums are added as a tree in each simdgroup, then over the simdgroups in order. Two
// passes over the row (three for layer norm), which stays in the cache.
// Memory: 32 bytes of threadgroup memory. Limit: bandwidth, 2 * cols * sizeof(T) per row.
#include "kernels/metal/norm_params.h"
#include "kernels/metal/shaders/threads.msl"

using namespace octavo::metal;

constant bool kIsLayer [[function_constant(0)]];
constant bool kHasBias [[function_constant(1)]];

template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(kNormThreads)]] void norm_rows(
    const device T* x [[buffer(0)]],
    const device W* weight [[buffer(1)]],
    const device W* bias [[buffer(2), function_constant(kHasBias)]],
    device T* out [[buffer(3)]],
    constant NormParams& params [[buffer(4)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup float parts[kNormThreads / kSimdWidth];
  const int cols = params.cols;
  x += ulong(row) * cols;
  out += ulong(row) * cols;
  weight += int(row) % params.groups * cols;
  float mean = 0;
  if (kIsLayer) {
    float sum = 0;
    for (int i = thread_index; i < cols; i += kNormThreads) sum += float(x[i]);
    mean = threads_sum<kNormThreads>(sum, parts, thread_index) / float(cols);
  }
  float squares = 0;
  for (int i = thread_index; i < cols; i += kNormThreads) {
    const float value = float(x[i]) - mean;
    squares = fma(value, value, squares);
  }
  const float variance = threads_sum<kNormThreads>(squares, parts, thread_index) / float(cols);
  const float factor = 1.0f / precise::sqrt(variance + params.eps);
  for (int i = thread_index; i < cols; i += kNormThreads) {
    float value = (float(x[i]) - mean) * factor * float(weight[i]);
    if (kHasBias) value += float(bias[i]);
    out[i] = T(value);
  }
}
