// mamba2.metal - Mamba-2's recurrence, one token at a time in both prefill and decode.
//
// A simdgroup keeps kStateRows rows (dimensions of x) of one head's state in registers while it
// processes the rows of its sequence; lanes span the state dimension, kPerLane elements each. Rows of
// the state are independent, so simdgroups never synchronize: grid (slices of a head, heads,
// sequences), kStateSimdgroups per threadgroup, no threadgroup memory, no barriers.
// The layout of the state in a block is [head_dim][state_dim].
// Registers: kStateRows * kPerLane + 2 * kPerLane floats per lane (40 for a state of 128).
// Limit: decode, bandwidth: 8 bytes per element of state. Prefill: latency of the tree per row.
#include "kernels/metal/shaders/lane_rows.msl"
#include "kernels/metal/shaders/state_blocks.msl"
#include "kernels/metal/shaders/state_heads.msl"

using namespace octavo::metal;

template <typename T, int kPerLane>
[[kernel, max_total_threads_per_threadgroup(kStateSimdgroups * 32)]] void mamba2(
    device uchar* pages [[buffer(0)]],
    const device int* cu_seqlens [[buffer(1)]],
    const device int* table [[buffer(2)]],
    const device T* xbc [[buffer(3)]],
    const device T* gates [[buffer(4)]],
    const device float* a_log [[buffer(5)]],
    const device float* dt_bias [[buffer(6)]],
    const device float* d [[buffer(7)]],
    device T* out [[buffer(8)]],
    constant MambaParams& params [[buffer(9)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int state_dim = params.state_dim;
  const int first = (int(group.x) * kStateSimdgroups + int(simdgroup)) * kStateRows;
  const int head = int(group.y);
  const int sequence = int(group.z);
  const int begin = cu_seqlens[sequence];
  const int end = cu_seqlens[sequence + 1];
  if (first >= params.head_dim || begin == end) return;

  const StateBlock block = state_block(params.places, table, sequence, head);
  const device float* from = (const device float*)(pages + block.from) + first * state_dim;
  float state[kStateRows][kPerLane];
  UNROLL
  for (int r = 0; r < kStateRows; ++r) {
    if (block.fresh) {
      UNROLL
      for (int i = 0; i < kPerLane; ++i) state[r][i] = 0;
    } else {
      load_head(from + r * state_dim, state_dim, lane, state[r]);
    }
  }
  const float rate = precise::exp(a_log[head]);
  const float bias = dt_bias[head];
  const float skip = d[head];
  const int values = params.heads * params.head_dim;
  const int b_column = values + head / (params.heads / params.groups) * state_dim;
  const int c_column = b_column + params.groups * state_dim;
  const int own = int(lane) * kStateRows / kSimdWidth;  // the row whose sum this lane receives
  const int value = head * params.head_dim + first + own;
  for (int row = begin; row < end; ++row) {
    const device T* numbers = xbc + ulong(row) * params.xbc_stride;
    const device T* gate = gates + ulong(row) * params.gates_stride;
    float b[kPerLane], c[kPerLane];
    load_head(numbers + b_column, state_dim, lane, b);
    load_head(numbers + c_column, state_dim, lane, c);
    const float step = softplus_of(float(gate[params.dt_column + head]) + bias);
    const float decay = state_decay(rate, step);
    const float own_x = float(numbers[value]);
    const float own_change = step * own_x;
    float sums[kStateRows];
    UNROLL
    for (int r = 0; r < kStateRows; ++r) {
      const float change = simd_shuffle(own_change, ushort(r * kSimdWidth / kStateRows));
      sums[r] = 0;
      UNROLL
      for (int i = 0; i < kPerLane; ++i) {
        state[r][i] = fma(change, b[i], state[r][i] * decay);
        sums[r] = fma(state[r][i], c[i], sums[r]);
      }
    }
    const float y = fma(skip, own_x, rows_sum(sums, lane));
    if (lane % (kSimdWidth / kStateRows) == 0)
      out[ulong(row) * values + value] = T(y * silu_of(float(gate[params.z_column + value])));
    if (block.each_row) {
      const ulong to = state_after_row(params.places, table, sequence, head, row - begin);
      store_rows(state, state_dim, lane, (device float*)(pages + to) + first * state_dim);
    }
  }
  if (!block.each_row)
    store_rows(state, state_dim, lane, (device float*)(pages + block.to) + first * state_dim);
}
