// merge_partials.metal - merges the partial results of items that were divided by splits.
//
// A threadgroup of four simdgroups per item and KV head; simdgroup s processes columns s, s + 4,
// ..., lanes span the values. Partials are merged in index order (attention_fold.msl).
// No threadgroup memory. Limit: bandwidth, (kValueDim + 2) * 4 bytes per column and split.
#include "kernels/metal/shaders/attention_fold.msl"
#include "kernels/metal/attention_params.h"

using namespace octavo::metal;

constant bool kHasSinks [[function_constant(0)]];

template <typename T, int kValueDim>
[[kernel, max_total_threads_per_threadgroup(kAttentionSimdgroups * 32)]] void merge_partials(
    const device float* partials [[buffer(0)]],
    const device int* items [[buffer(1)]],  // MergeItem each
    const device float* sinks [[buffer(2), function_constant(kHasSinks)]],
    device T* out [[buffer(3)]],
    constant AttentionParams& params [[buffer(4)]],
    uint2 group_at [[threadgroup_position_in_grid]],
    ushort simdgroup_index [[simdgroup_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]) {
  constexpr int kLaneValues = (kValueDim + kSimdWidth - 1) / kSimdWidth;
  const device MergeItem& item = ((const device MergeItem*)items)[group_at.x];
  const int kv_head = group_at.y;
  const int group = params.q_heads / params.kv_heads;
  const int width = item.tiles * kTileColumns;
  for (int column = simdgroup_index; column < item.columns; column += kAttentionSimdgroups) {
    const device float* partial = partials + ulong(kv_head) * params.partial_stride +
                                  (ulong(item.partial) * kTileColumns + column) * (kValueDim + 2);
    float highest = kNothing;
    float sum = 0;
    float values[kLaneValues];
    UNROLL
    for (int i = 0; i < kLaneValues; ++i) values[i] = 0;
    for (int p = 0; p < item.partials; ++p) {
      const FoldFactors factors = fold_factors(highest, partial[kValueDim]);
      highest = factors.new_max;
      sum = fold(sum, partial[kValueDim + 1], factors);
      UNROLL
      for (int i = 0; i < kLaneValues; ++i) {
        const int d = i * kSimdWidth + lane;
        if (d < kValueDim) values[i] = fold(values[i], partial[d], factors);
      }
      partial += width * (kValueDim + 2);
    }
    const int at = item.column_begin + column;
    const int head = kv_head * group + at % group;
    const float factor = kHasSinks ? final_factor(highest, sum, sinks[head])
                                   : final_factor(sum);
    device T* target = out + (ulong(item.first_row + at / group) * params.q_heads + head) * kValueDim;
    UNROLL
    for (int i = 0; i < kLaneValues; ++i) {
      const int d = i * kSimdWidth + lane;
      if (d < kValueDim) target[d] = T(values[i] * factor);
    }
  }
}
