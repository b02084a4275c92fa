// sampling.metal - samples tokens: greedily, or with temperature, min_p, top_k and top_p.
//
// logit_maxima: one simdgroup per block of kLogitBlock logits finds its maximum; grid (groups of
// blocks, rows). sample_rows: one threadgroup of kSampleThreads per row. It reads only blocks whose
// maximum is large enough to matter: one block for greedy sampling, each block once for a draw, and
// the blocks that reach a cut several times. Nothing is sorted: sums over 16 thresholds at a time
// find a cut.
// Memory: 3.2 KiB of threadgroup memory. Limit: bandwidth, 4 * vocab bytes (twice that for a draw);
// each row is sampled by one core.
#include "kernels/metal/shaders/logit_row.msl"

using namespace octavo::metal;

constant bool kHasRules [[function_constant(0)]];  // some rows are in `ruled`, the others in `logits`

[[kernel, max_total_threads_per_threadgroup(kMaximaThreads)]] void logit_maxima(
    const device float* logits [[buffer(0)]],
    const device float* ruled [[buffer(1), function_constant(kHasRules)]],
    const device uint* draws [[buffer(2)]],
    device float* maxima [[buffer(3)]],
    constant SampleParams& params [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int block = int(group.x) * (kMaximaThreads / kSimdWidth) + int(simdgroup);
  if (block >= params.blocks) return;
  const RowDraw draw = ((const device RowDraw*)draws)[group.y];
  const device float* row = kHasRules && draw.ruled >= 0 ? ruled + ulong(draw.ruled) * params.vocab
                                                         : logits + ulong(group.y) * params.vocab;
  const int end = min((block + 1) * kLogitBlock, params.vocab);
  float best = -INFINITY;
  for (int i = block * kLogitBlock + int(lane); i < end; i += kSimdWidth) {
    const float logit = row[i];
    best = logit > best ? logit : best;  // false for NaN
  }
  best = lanes_max(best);
  if (lane == 0) maxima[ulong(group.y) * params.blocks + block] = best;
}

inline float largest_of(LogitRow row, int blocks, threadgroup float* parts, RowThread me) {
  float best = -INFINITY;
  for (int b = me.index; b < blocks; b += kSampleThreads) best = max(best, row.maxima[b]);
  best = lanes_max(best);
  if (me.lane == 0) parts[me.simdgroup] = best;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int s = 0; s < kRowSimdgroups; ++s) best = max(best, parts[s]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return best;
}

// The first index of the largest logit; 0 if all are NaN.
inline int first_of(LogitRow row, float largest, int blocks, threadgroup int* parts, RowThread me) {
  int first = kNoIndex;
  for (int b = me.simdgroup; b < blocks; b += kRowSimdgroups) {
    if (row.maxima[b] != largest) continue;
    const int end = min((b + 1) * kLogitBlock, row.count);
    for (int i = b * kLogitBlock + me.lane; i < end; i += kSimdWidth)
      if (row.logits[i] == largest) first = min(first, i);
  }
  for (ushort distance = kSimdWidth / 2; distance > 0; distance /= 2)
    first = min(first, simd_shuffle_xor(first, distance));
  if (me.lane == 0) parts[me.simdgroup] = first;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int s = 0; s < kRowSimdgroups; ++s) first = min(first, parts[s]);
  return first == kNoIndex ? 0 : first;
}

// If rules ban every token: the largest of the original logits that the mask allows, or the first token
// that it allows. mask: nullptr if every token may be drawn.
inline int likeliest(const device float* logits, const device uint* mask, int count,
                     threadgroup float* parts, threadgroup int* firsts, RowThread me) {
  float best = -INFINITY;
  int first = kNoIndex, allowed = kNoIndex;
  for (int i = me.index; i < count; i += kSampleThreads) {
    if (mask != nullptr && (mask[i / 32] >> (i % 32) & 1u) == 0) continue;
    allowed = min(allowed, i);
    if (!(logits[i] > best)) continue;
    best = logits[i];
    first = i;
  }
  float largest = lanes_max(best);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (me.lane == 0) parts[me.simdgroup] = largest;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int s = 0; s < kRowSimdgroups; ++s) largest = max(largest, parts[s]);
  int found = largest == -INFINITY ? allowed : best == largest ? first : kNoIndex;
  for (ushort distance = kSimdWidth / 2; distance > 0; distance /= 2)
    found = min(found, simd_shuffle_xor(found, distance));
  if (me.lane == 0) firsts[me.simdgroup] = found;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int s = 0; s < kRowSimdgroups; ++s) found = min(found, firsts[s]);
  return found == kNoIndex ? 0 : found;
}

// The cut after the top_k largest. `lightest`: smaller logits have no weight.
inline Cut top_k_cut(LogitRow row, Weighing weighing, int top_k, int blocks, float lightest,
                     Cut all, device float* sums, RowSpace space, RowThread me) {
  const ulong target = ulong(top_k) * fixed_of(1.0f);
  float lowest = lightest;
  if (top_k <= blocks) {
    // The top_k largest block maxima are top_k logits: the cut is not below them.
    LogitRow tops;
    tops.logits = row.maxima;
    tops.maxima = row.maxima;
    tops.count = blocks;
    KeyRange range;
    range.low = key_of(lightest);
    range.high = key_of(weighing.largest) + 1;
    range.above = 0;
    range = narrow<Measure::kCount, false>(tops, weighing, all, target, range, kEvenRounds, space,
                                           me);
    lowest = of_key(range.low);
  }
  return find_cut<Measure::kCount>(row, weighing, all, target, lowest, sums, space, me);
}

// The smallest set of most likely tokens within `within` whose weight reaches top_p of the total.
inline Cut nucleus(LogitRow row, Weighing weighing, constant SampleParams& params, RowDraw draw,
                   Cut within, float lightest, device float* sums, RowSpace space, RowThread me) {
  const ulong total = block_sums<Measure::kWeights>(row, weighing, within, sums, space, me);
  const ulong top_p = ulong(draw.top_p_high) << 32 | draw.top_p_low;
  const ulong target = max(fraction_of(total, top_p), ulong(1));
  // All tokens with a smaller weight together do not exceed the weight that may be dropped, so the
  // cut is not among them.
  const float light = float(total - target + 1) / kUnit / float(params.vocab);
  const int exponent = int(as_type<uint>(light) >> 23) - 127;
  const float distance = float(exponent) * 0.693148f * draw.temperature;
  const float lowest = max(max(weighing.largest + distance, lightest), within.logit);
  return find_cut<Measure::kWeights>(row, weighing, within, target, lowest, sums, space, me);
}

[[kernel, max_total_threads_per_threadgroup(kSampleThreads)]] void sample_rows(
    const device float* logits [[buffer(0)]],
    const device float* ruled [[buffer(1), function_constant(kHasRules)]],
    const device uint* masks [[buffer(2), function_constant(kHasRules)]],
    const device float* maxima [[buffer(3)]],
    const device uint* draws [[buffer(4)]],
    device float* sums [[buffer(5)]],
    device int* tokens [[buffer(6)]],
    constant SampleParams& params [[buffer(7)]],
    uint row_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup ulong parts[kRowSimdgroups * kThresholds];
  threadgroup ulong totals[kThresholds];
  threadgroup float weights[kLogitBlock];
  threadgroup int firsts[kRowSimdgroups];
  RowSpace space;
  space.parts = parts;
  space.totals = totals;
  space.weights = weights;
  RowThread me;
  me.index = int(thread_index);
  me.simdgroup = int(simdgroup);
  me.lane = int(lane);
  const RowDraw draw = ((const device RowDraw*)draws)[row_index];
  const device float* own = logits + ulong(row_index) * params.vocab;
  const bool has_rules = kHasRules && draw.ruled >= 0;
  LogitRow row;
  row.logits = has_rules ? ruled + ulong(draw.ruled) * params.vocab : own;
  row.maxima = maxima + ulong(row_index) * params.blocks;
  row.count = params.vocab;
  sums += ulong(row_index) * params.blocks;

  Weighing weighing;
  weighing.largest = largest_of(row, params.blocks, weights, me);
  weighing.scale = draw.scale;
  weighing.floor = draw.floor;
  constexpr float kLargestFloat = 3.402823466e38f;
  const bool drawn = draw.temperature > 0 && weighing.largest >= -kLargestFloat &&
                     weighing.largest < kLargestFloat;
  int token = 0;
  if (drawn) {
    const float lightest = max(weighing.largest - 88.0f * draw.temperature, -kLargestFloat);
    Cut cut;
    cut.logit = -INFINITY;
    cut.index = kNoIndex;
    if (draw.top_k > 0)
      cut = top_k_cut(row, weighing, draw.top_k, params.blocks, lightest, cut, sums, space, me);
    if (draw.has_top_p != 0)
      cut = nucleus(row, weighing, params, draw, cut, lightest, sums, space, me);
    const ulong total = block_sums<Measure::kWeights>(row, weighing, cut, sums, space, me);
    const ulong uniform_part = ulong(draw.uniform_high) << 32 | draw.uniform_low;
    token = index_at<Measure::kWeights>(row, weighing, cut, fraction_of(total, uniform_part), sums,
                                        space, me);
  } else if (has_rules && weighing.largest == -INFINITY) {
    const device uint* mask =
        draw.mask >= 0 ? masks + ulong(draw.mask) * ((params.vocab + 31) / 32) : nullptr;
    token = likeliest(own, mask, params.vocab, weights, firsts, me);
  } else {
    token = first_of(row, weighing.largest, params.blocks, firsts, me);
  }
  if (thread_index == 0) tokens[row_index] = token;
}
