// causal_conv.metal - depthwise convolution over the rows of a sequence; pages keep its last rows.
//
// A thread processes one channel of up to kConvRows rows of a sequence and keeps the previous
// inputs in registers; grid (groups of kConvThreads channels, items of rows). Items are
// independent: only the first item of a sequence reads the state, and it writes the new state when
// it is done; where each row has a state of its own, the item of the row writes it. No threadgroup
// memory, no barriers.
// Limit: bandwidth, 2 * sizeof(T) per element and (kTaps - 1) / kConvRows more for the inputs that
// items share.
#include "kernels/metal/shaders/state_blocks.msl"

using namespace octavo::metal;

constant bool kSilu [[function_constant(0)]];
constant bool kHasBias [[function_constant(1)]];

template <typename T, typename W, int kTaps>
[[kernel]] void causal_conv(
    device uchar* pages [[buffer(0)]],
    const device int* cu_seqlens [[buffer(1)]],
    const device int* table [[buffer(2)]],
    const device T* x [[buffer(3)]],
    const device W* taps [[buffer(4)]],
    const device W* bias [[buffer(5), function_constant(kHasBias)]],
    device T* out [[buffer(6)]],
    constant ConvParams& params [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int kPast = kTaps - 1;
  const int channel = int(group.x) * kConvThreads + int(thread_index);
  const SequenceRows rows = rows_of_item<kConvRows>(cu_seqlens, params.sequences, int(group.y));
  if (channel >= params.channels || rows.begin == rows.end) return;
  x += params.x_first + channel;
  out += channel;

  float weights[kTaps];
  UNROLL
  for (int j = 0; j < kTaps; ++j) weights[j] = float(taps[ulong(j) * params.channels + channel]);
  const float start = kHasBias ? float(bias[channel]) : 0.0f;

  const bool keeps_state = rows.block == 0;
  const int unit = channel / params.unit_channels;
  const int in_unit = channel - unit * params.unit_channels;
  const StateBlock block = state_block(params.places, table, rows.sequence, unit);
  float past[kPast];  // previous inputs, oldest first
  if (keeps_state) {
    const device T* from = (const device T*)(pages + block.from) + in_unit;
    UNROLL
    for (int j = 0; j < kPast; ++j)
      past[j] = block.fresh ? 0.0f : float(from[j * params.unit_channels]);
  } else {
    UNROLL
    for (int j = 0; j < kPast; ++j)
      past[j] = float(x[ulong(rows.begin - kPast + j) * params.x_stride]);
  }
  for (int row = rows.begin; row < rows.end; ++row) {
    const float input = float(x[ulong(row) * params.x_stride]);
    float sum = start;
    UNROLL
    for (int j = 0; j < kPast; ++j) sum = fma(weights[j], past[j], sum);
    sum = fma(weights[kPast], input, sum);
    out[ulong(row) * params.channels] = T(kSilu ? silu_of(sum) : sum);
    UNROLL
    for (int j = 0; j + 1 < kPast; ++j) past[j] = past[j + 1];
    past[kPast - 1] = input;
    if (block.each_row) {
      const ulong after = state_after_row(params.places, table, rows.sequence, unit,
                                          row - cu_seqlens[rows.sequence]);
      device T* to = (device T*)(pages + after) + in_unit;
      UNROLL
      for (int j = 0; j < kPast; ++j) to[j * params.unit_channels] = T(past[j]);
    }
  }
  if (!keeps_state || block.each_row) return;
  const int end = cu_seqlens[rows.sequence + 1];
  if (rows.end < end) {  // other items process the last rows
    UNROLL
    for (int j = 0; j < kPast; ++j) past[j] = float(x[ulong(end - kPast + j) * params.x_stride]);
  }
  device T* to = (device T*)(pages + block.to) + in_unit;
  UNROLL
  for (int j = 0; j < kPast; ++j) to[j * params.unit_channels] = T(past[j]);
}
