// expert_order.metal - sorts (token, expert) pairs by expert, so that rows of one expert are
// adjacent, and divides them into tiles of rows of one expert each.
//
// One threadgroup; thread e reads all ids and handles experts e, e + kOrderThreads, ... Pairs of
// one expert keep their order. Memory: 8 KiB. Limit: latency; each thread reads 8 * pairs bytes,
// from the cache and broadcast over a simdgroup.
#include "kernels/metal/expert_mlp_params.h"
#include "kernels/metal/linear_params.h"
#include "kernels/metal/shaders/numbers.msl"

using namespace octavo::metal;

// ids: [pairs]; tokens: [pairs], the token of each sorted row; places: [pairs], each pair's sorted
// row; tiles: see linear_params.h.
[[kernel, max_total_threads_per_threadgroup(kOrderThreads)]] void expert_order(
    const device int* ids [[buffer(0)]],
    device int* tokens [[buffer(1)]],
    device int* places [[buffer(2)]],
    device int* tiles [[buffer(3)]],
    constant ExpertOrderParams& params [[buffer(4)]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup int first_row[kMostExperts];  // first the counts, then the start of the rows
  threadgroup int first_tile[kMostExperts];
  for (int e = thread_index; e < params.experts; e += kOrderThreads) {
    int count = 0;
    for (int pair = 0; pair < params.pairs; ++pair) count += ids[pair] == e ? 1 : 0;
    first_row[e] = count;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    int row = 0, tile = 0;
    for (int e = 0; e < params.experts; ++e) {
      const int count = first_row[e];
      first_row[e] = row;
      first_tile[e] = tile;
      row += count;
      tile += (count + params.tile_rows - 1) / params.tile_rows;
    }
    tiles[0] = tile;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int e = thread_index; e < params.experts; e += kOrderThreads) {
    const int begin = first_row[e];
    int row = begin;
    for (int pair = 0; pair < params.pairs; ++pair) {
      if (ids[pair] != e) continue;
      tokens[row] = pair / params.top_k;
      places[pair] = row;
      ++row;
    }
    device int* tile = tiles + 1 + first_tile[e] * kTileWords;
    for (int at = begin; at < row; at += params.tile_rows, tile += kTileWords) {
      tile[0] = e;
      tile[1] = at;
      tile[2] = min(params.tile_rows, row - at);
    }
  }
}
