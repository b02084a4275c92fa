// logprobs.metal - what log probabilities of a row's tokens are computed from, with the CPU's bits
// (kernels/cpu/logprobs.cpp, whose finish_logprobs() computes the logarithms).
//
// best_tokens: one simdgroup per block of kLogitBlock logits finds its most likely token; grid (groups of
// blocks, rows). weight_sums: half a simdgroup per block sums the weights of a draw at temperature 1 and counts
// the logits above the token's; the same grid with twice the blocks. top_tokens: one threadgroup of
// kTopThreads per row finds the most likely tokens one by one: the best of all blocks' best, then the block's
// next. Memory: up to 256 bytes. Limit: bandwidth, 8 * vocab bytes; for many top tokens, the latency of a
// round per token.
#include "kernels/metal/logprobs_params.h"
#include "kernels/metal/shaders/logit_weights.msl"

using namespace octavo::metal;

constant constexpr float kSmallestWeight = 2e-38f;  // as for a draw

// A logit as the CPU compares it: NaN counts as minus infinity, a denormal number as zero.
inline float number_of(float logit) {
  const float x = logit > -INFINITY ? logit : -INFINITY;
  return abs(x) < 1.17549435e-38f ? 0.0f : x;
}

// A number that is larger for likelier tokens: by logit, then the lower id. 0 stands for no token.
inline ulong place_of(float logit, int token) {
  return ulong(key_of(number_of(logit))) << 32 | ulong(~uint(token));
}
inline float logit_of(ulong place) { return of_key(uint(place >> 32)); }
inline int token_of(ulong place) { return int(~uint(place)); }

inline ulong lanes_best(ulong place) {
  for (ushort distance = kSimdWidth / 2; distance > 0; distance /= 2) {
    const uint high = simd_shuffle_xor(uint(place >> 32), distance);
    const uint low = simd_shuffle_xor(uint(place), distance);
    place = max(place, ulong(high) << 32 | ulong(low));
  }
  return place;
}

// The best token of a block below `limit`. Every lane receives it.
inline ulong best_of_block(const device float* row, int block, int vocab, ulong limit, int lane) {
  const int end = min((block + 1) * kLogitBlock, vocab);
  ulong best = 0;
  for (int i = block * kLogitBlock + lane; i < end; i += kSimdWidth) {
    const ulong place = place_of(row[i], i);
    if (place < limit) best = max(best, place);
  }
  return lanes_best(best);
}

[[kernel, max_total_threads_per_threadgroup(kMaximaThreads)]] void best_tokens(
    const device float* logits [[buffer(0)]],
    const device int* rows [[buffer(1)]],
    device ulong* bests [[buffer(2)]],
    constant SampleParams& params [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int block = int(group.x) * (kMaximaThreads / kSimdWidth) + int(simdgroup);
  if (block >= params.blocks) return;
  const RowTop own = ((const device RowTop*)rows)[group.y];
  const device float* row = logits + ulong(own.row) * params.vocab;
  const ulong best = best_of_block(row, block, params.vocab, ~ulong(0), int(lane));
  if (lane == 0) bests[ulong(group.y) * params.blocks + block] = best;
}

[[kernel, max_total_threads_per_threadgroup(kMaximaThreads)]] void weight_sums(
    const device float* logits [[buffer(0)]],
    const device int* rows [[buffer(1)]],
    const device int* tokens [[buffer(2)]],
    const device ulong* bests [[buffer(3)]],
    device float* ends [[buffer(4)]],
    device float* sums [[buffer(5)]],
    device int* above [[buffer(6)]],
    constant SampleParams& params [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int kSimdgroups = kMaximaThreads / kSimdWidth;
  threadgroup ulong parts[kSimdgroups];
  const RowTop own = ((const device RowTop*)rows)[group.y];
  const device float* row = logits + ulong(own.row) * params.vocab;
  const ulong first_block = ulong(group.y) * params.blocks;
  ulong best = 0;
  for (int b = int(thread_index); b < params.blocks; b += kMaximaThreads)
    best = max(best, bests[first_block + b]);
  best = lanes_best(best);
  if (lane == 0) parts[simdgroup] = best;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int s = 0; s < kSimdgroups; ++s) best = max(best, parts[s]);

  Weighing weighing;
  weighing.largest = logit_of(best);
  weighing.scale = 1.44269504f;
  weighing.floor = kSmallestWeight;
  const float own_logit = row[clamp(tokens[own.row], 0, params.vocab - 1)];
  const float limit = number_of(own_logit);
  const int half_width = kSimdWidth / 2;
  const int block = 2 * (int(group.x) * kSimdgroups + int(simdgroup)) + int(lane) / half_width;
  const int end = min((block + 1) * kLogitBlock, params.vocab);
  float sum = 0;
  int count = 0;
  for (int i = block * kLogitBlock + int(lane) % half_width; i < end; i += half_width) {
    sum += weight_of(weighing, row[i]);
    count += number_of(row[i]) > limit ? 1 : 0;
  }
  // In the CPU's order: sixteen lanes, a tree.
  for (ushort distance = half_width / 2; distance > 0; distance /= 2) {
    sum += simd_shuffle_xor(sum, distance);
    count += simd_shuffle_xor(count, distance);
  }
  if (block < params.blocks && lane % half_width == 0) {
    sums[first_block + block] = sum;
    above[first_block + block] = count;
  }
  if (group.x == 0 && thread_index == 0) {
    ends[2 * group.y] = own_logit;
    ends[2 * group.y + 1] = weighing.largest;
  }
}

[[kernel, max_total_threads_per_threadgroup(kTopThreads)]] void top_tokens(
    const device float* logits [[buffer(0)]],
    const device int* rows [[buffer(1)]],
    const device ulong* bests [[buffer(2)]],
    device int* top_ids [[buffer(3)]],
    device float* top_logits [[buffer(4)]],
    constant SampleParams& params [[buffer(5)]],
    constant int& most [[buffer(6)]],
    uint row_index [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int kSimdgroups = kTopThreads / kSimdWidth;
  constexpr int kBlocksPerThread = kMostLogits / kLogitBlock / kTopThreads;
  threadgroup ulong parts[2][kSimdgroups];  // a round writes one half while others still read the other
  const RowTop own = ((const device RowTop*)rows)[row_index];
  const device float* row = logits + ulong(own.row) * params.vocab;
  bests += ulong(row_index) * params.blocks;
  // Block b belongs to simdgroup b % kSimdgroups.
  const int first_block = int(lane) * kSimdgroups + int(simdgroup);
  ulong left[kBlocksPerThread];  // the best of each own block that is not found yet
  UNROLL
  for (int j = 0; j < kBlocksPerThread; ++j) {
    const int block = j * kTopThreads + first_block;
    left[j] = block < params.blocks ? bests[block] : 0;
  }
  for (int round = 0; round < own.count; ++round) {
    ulong best = 0;
    UNROLL
    for (int j = 0; j < kBlocksPerThread; ++j) best = max(best, left[j]);
    best = lanes_best(best);
    if (lane == 0) parts[round % 2][simdgroup] = best;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int s = 0; s < kSimdgroups; ++s) best = max(best, parts[round % 2][s]);
    const int token = token_of(best);
    if (thread_index == 0) {
      top_ids[row_index * most + round] = token;
      top_logits[row_index * most + round] = row[token];
    }
    const int found = token / kLogitBlock;
    if (found % kSimdgroups != int(simdgroup)) continue;  // uniform over the simdgroup
    const ulong next = best_of_block(row, found, params.vocab, best, int(lane));
    UNROLL
    for (int j = 0; j < kBlocksPerThread; ++j)
      left[j] = j * kTopThreads + first_block == found ? next : left[j];
  }
}
