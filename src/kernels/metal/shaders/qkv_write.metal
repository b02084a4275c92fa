// qkv_write.metal - the steps between the q, k, v projection and attention: normalizes and rotates
// the heads of q and k, and writes k and v to their pages in place.
//
// A threadgroup of four simdgroups per token; simdgroup s processes heads s, s + 4, ... of q, then
// of k, then of v, one at a time, in threadgroup memory (4 * head size * 4 bytes). Values are
// rounded to T after each operation. Limit: bandwidth, each element is read and written once (read
// twice with a norm).
#include "kernels/metal/shaders/head_rows.msl"
#include "kernels/metal/shaders/pages.msl"
#include "kernels/metal/qkv_params.h"

using namespace octavo::metal;

constant bool kHasQueries [[function_constant(0)]];
constant bool kHasPages [[function_constant(1)]];
constant bool kNorms [[function_constant(2)]];
constant bool kNormsRows [[function_constant(3)]];    // one norm over all heads of a token
constant bool kNormsValues [[function_constant(4)]];  // each v head, without a weight
constant bool kRotates [[function_constant(5)]];
constant bool kScalesByPosition [[function_constant(6)]];
constant bool kHasKeyNorm [[function_constant(7)]];
constant bool kInt8 [[function_constant(8)]];
constant bool kValuesInKeys [[function_constant(9)]];

template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(kRowSimdgroups * 32)]] void qkv_write(
    const device T* q [[buffer(0), function_constant(kHasQueries)]],
    const device T* k [[buffer(1), function_constant(kHasPages)]],
    const device T* v [[buffer(2), function_constant(kHasPages)]],
    const device W* q_norm [[buffer(3), function_constant(kNorms)]],
    const device W* k_norm [[buffer(4), function_constant(kHasKeyNorm)]],
    const device int* positions [[buffer(5), function_constant(kScalesByPosition)]],
    const device float* rotations [[buffer(6), function_constant(kRotates)]],  // [T, 2, pairs]
    const device int* cu_seqlens_q [[buffer(7), function_constant(kHasPages)]],
    const device int* context_lens [[buffer(8), function_constant(kHasPages)]],
    const device int* block_tables [[buffer(9), function_constant(kHasPages)]],
    device T* q_out [[buffer(10), function_constant(kHasQueries)]],
    device uchar* pages [[buffer(11), function_constant(kHasPages)]],
    constant QkvParams& params [[buffer(12)]],
    threadgroup float* rows [[threadgroup(0)]],  // [simdgroups][max(k_dim, v_dim)]
    uint token [[threadgroup_position_in_grid]],
    ushort simdgroup_index [[simdgroup_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]) {
  const int k_dim = params.k_dim;
  const int v_dim = params.v_dim;
  threadgroup float* row = rows + simdgroup_index * max(k_dim, v_dim);
  const ulong turned = ulong(token) * 2 * params.pairs;

  if (kHasQueries) {
    const device T* own = q + params.q.first + ulong(token) * params.q.stride;
    float factor = 0;
    if (kNorms && kNormsRows) factor = norm_factor(own, params.q_heads * k_dim, params.eps, lane);
    for (int h = simdgroup_index; h < params.q_heads; h += kRowSimdgroups) {
      const device T* head = own + h * k_dim;
      load_head(head, k_dim, row, lane);
      if (kNorms) {
        if (!kNormsRows) factor = norm_factor(head, k_dim, params.eps, lane);
        scale_head<T>(row, k_dim, factor, q_norm + (kNormsRows ? h * k_dim : 0), lane);
      }
      if (kRotates) rotate_head<T>(row, params.pairs, rotations + turned, lane);
      if (kScalesByPosition) {
        const float turns = floor(float(positions[token]) / params.position_period);
        const float scale = 1.0f + params.position_beta * precise::log(1.0f + turns);
        scale_head<T>(row, k_dim, scale, lane);
      }
      store_head(row, k_dim, q_out + (ulong(token) * params.q_heads + h) * k_dim, lane);
    }
  }
  if (!kHasPages) return;

  const int sequence = sequence_of(cu_seqlens_q, params.sequences, int(token));
  const int place = context_lens[sequence] - (cu_seqlens_q[sequence + 1] - int(token));
  const device int* table = block_tables + sequence * params.pages.table_columns;
  const int slot = place % params.pages.block_tokens;
  const int width = kInt8 ? 1 : int(sizeof(T));
  const device T* own_k = k + params.k.first + ulong(token) * params.k.stride;
  const device T* own_v = v + params.v.first + ulong(token) * params.v.stride;
  float factor = 0;
  if (kHasKeyNorm && kNormsRows)
    factor = norm_factor(own_k, params.kv_heads * k_dim, params.eps, lane);
  for (int h = simdgroup_index; h < params.kv_heads; h += kRowSimdgroups) {
    device uchar* page = pages + head_offset(table, params.pages, place, h);
    const device T* key = own_k + h * k_dim;
    load_head(key, k_dim, row, lane);
    if (kHasKeyNorm) {
      if (!kNormsRows) factor = norm_factor(key, k_dim, params.eps, lane);
      scale_head<T>(row, k_dim, factor, k_norm + (kNormsRows ? h * k_dim : 0), lane);
    }
    if (kRotates) rotate_head<T>(row, params.pairs, rotations + turned, lane);
    device uchar* key_at = page + slot * k_dim * width;
    if (kInt8) {
      device float* scale = (device float*)(page + params.pages.k_scales) + slot;
      store_quantised(row, k_dim, (device char*)key_at, scale, lane);
    } else {
      store_head(row, k_dim, (device T*)key_at, lane);
    }
    if (kValuesInKeys) continue;
    const device T* value = own_v + h * v_dim;
    load_head(value, v_dim, row, lane);
    if (kNormsValues)
      scale_head<T>(row, v_dim, norm_factor(value, v_dim, params.eps, lane), lane);
    device uchar* value_at = page + params.pages.v_first + slot * v_dim * width;
    if (kInt8) {
      device float* scale = (device float*)(page + params.pages.v_scales) + slot;
      store_quantised(row, v_dim, (device char*)value_at, scale, lane);
    } else {
      store_head(row, v_dim, (device T*)value_at, lane);
    }
  }
}
