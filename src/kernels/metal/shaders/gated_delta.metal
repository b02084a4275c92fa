// gated_delta.metal - the gated delta rule, one token at a time in both prefill and decode.
//
// gated_delta: a simdgroup keeps kStateRows rows (value dimensions) of one head's state in
// registers while it processes the rows of its sequence; lanes span the key dimension, kPerLane
// elements each. Rows of the state are independent, so simdgroups never synchronize: grid (slices
// of a head, heads, sequences), kStateSimdgroups per threadgroup, no threadgroup memory, no
// barriers. Each simdgroup normalizes q and k itself: a few shuffles are cheaper than a barrier per
// row, and slices distribute the prefill of one sequence over the GPU. For the same reason the norm
// of the output, which needs all rows of a head, is a separate kernel: gated_delta_norm, one
// simdgroup per row and head.
// The layout of the state in a block is [v_dim][k_dim].
// Registers: kStateRows * kPerLane + 4 * kPerLane floats per lane (48 for k_dim 128).
// Limit: decode, bandwidth: 8 bytes per element of state. Prefill: latency of the two trees per
// row.
#include "kernels/metal/shaders/lane_rows.msl"
#include "kernels/metal/shaders/state_blocks.msl"
#include "kernels/metal/shaders/state_heads.msl"

using namespace octavo::metal;

// The head divided by its L2 norm, times `scale`.
template <int kPerLane>
inline void unit_head(thread float (&head)[kPerLane], float scale) {
  float squares = 0;
  UNROLL
  for (int i = 0; i < kPerLane; ++i) squares = fma(head[i], head[i], squares);
  const float factor = scale / precise::sqrt(lanes_sum(squares) + 1e-6f);
  UNROLL
  for (int i = 0; i < kPerLane; ++i) head[i] *= factor;
}

template <typename T, int kPerLane>
[[kernel, max_total_threads_per_threadgroup(kStateSimdgroups * 32)]] void gated_delta(
    device uchar* pages [[buffer(0)]],
    const device int* cu_seqlens [[buffer(1)]],
    const device int* table [[buffer(2)]],
    const device T* qkv [[buffer(3)]],
    const device T* gates [[buffer(4)]],
    const device float* a_log [[buffer(5)]],
    const device float* dt_bias [[buffer(6)]],
    device float* y [[buffer(7)]],
    constant DeltaParams& params [[buffer(8)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int k_dim = params.k_dim;
  const int first = (int(group.x) * kStateSimdgroups + int(simdgroup)) * kStateRows;
  const int head = int(group.y);
  const int sequence = int(group.z);
  const int begin = cu_seqlens[sequence];
  const int end = cu_seqlens[sequence + 1];
  if (first >= params.v_dim || begin == end) return;

  const StateBlock block = state_block(params.places, table, sequence, head);
  const device float* from = (const device float*)(pages + block.from) + first * k_dim;
  float state[kStateRows][kPerLane];
  UNROLL
  for (int r = 0; r < kStateRows; ++r) {
    if (block.fresh) {
      UNROLL
      for (int i = 0; i < kPerLane; ++i) state[r][i] = 0;
    } else {
      load_head(from + r * k_dim, k_dim, lane, state[r]);
    }
  }
  const float rate = precise::exp(a_log[head]);
  const float bias = dt_bias[head];
  const int key_head = head / (params.value_heads / params.key_heads);
  const int own = int(lane) * kStateRows / kSimdWidth;  // the row whose sums this lane receives
  const int value = head * params.v_dim + first + own;
  for (int row = begin; row < end; ++row) {
    const device T* q_heads = qkv + ulong(row) * params.qkv_stride;
    const device T* k_heads = q_heads + params.key_heads * k_dim;
    const device T* v_heads = k_heads + params.key_heads * k_dim;
    const device T* gate = gates + ulong(row) * params.gates_stride + head;
    float q[kPerLane], k[kPerLane];
    load_head(q_heads + key_head * k_dim, k_dim, lane, q);
    load_head(k_heads + key_head * k_dim, k_dim, lane, k);
    unit_head(q, params.q_scale);
    unit_head(k, 1.0f);
    const float decay = state_decay(rate, softplus_of(float(gate[params.a_column]) + bias));
    const float beta = sigmoid_of(float(gate[params.b_column]));

    float sums[kStateRows];
    UNROLL
    for (int r = 0; r < kStateRows; ++r) {
      sums[r] = 0;
      UNROLL
      for (int i = 0; i < kPerLane; ++i) sums[r] = fma(state[r][i], k[i], sums[r]);
    }
    const float memory = rows_sum(sums, lane);
    const float own_change = beta * fma(-decay, memory, float(v_heads[value]));
    UNROLL
    for (int r = 0; r < kStateRows; ++r) {
      const float change = simd_shuffle(own_change, ushort(r * kSimdWidth / kStateRows));
      sums[r] = 0;
      UNROLL
      for (int i = 0; i < kPerLane; ++i) {
        state[r][i] = fma(change, k[i], state[r][i] * decay);
        sums[r] = fma(state[r][i], q[i], sums[r]);
      }
    }
    const float result = rows_sum(sums, lane);
    if (lane % (kSimdWidth / kStateRows) == 0)
      y[ulong(row) * (params.value_heads * params.v_dim) + value] = result;
    if (block.each_row) {
      const ulong to = state_after_row(params.places, table, sequence, head, row - begin);
      store_rows(state, k_dim, lane, (device float*)(pages + to) + first * k_dim);
    }
  }
  if (!block.each_row)
    store_rows(state, k_dim, lane, (device float*)(pages + block.to) + first * k_dim);
}

// out = rms_norm(y) * norm * silu(z); grid (groups of kStateSimdgroups heads, rows).
template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(kStateSimdgroups * 32)]] void gated_delta_norm(
    const device float* y [[buffer(0)]],
    const device T* gates [[buffer(1)]],
    const device W* norm [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant DeltaParams& params [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int head = int(group.x) * kStateSimdgroups + int(simdgroup);
  if (head >= params.value_heads) return;
  const int v_dim = params.v_dim;
  const ulong at = (ulong(group.y) * params.value_heads + head) * v_dim;
  const device T* z =
      gates + ulong(group.y) * params.gates_stride + params.z_column + head * v_dim;
  float numbers[kStateLargestDim / kSimdWidth];
  load_head(y + at, v_dim, lane, numbers);
  float squares = 0;
  UNROLL
  for (int i = 0; i < kStateLargestDim / kSimdWidth; ++i)
    squares = fma(numbers[i], numbers[i], squares);
  const float mean = lanes_sum(squares) / float(v_dim);
  const float factor = 1.0f / precise::sqrt(mean + params.norm_eps);
  UNROLL
  for (int i = 0; i < kStateLargestDim / kSimdWidth; ++i) {
    const int d = i * kSimdWidth + int(lane);
    if (d < v_dim) out[at + d] = T(numbers[i] * factor * float(norm[d]) * silu_of(float(z[d])));
  }
}
