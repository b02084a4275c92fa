// latent_write.metal - normalizes and rotates the latent rows of multi-head latent attention,
// writes them to pages, and writes the rotated part of the query heads. (linear.metal projects the
// queries into the latent space.)
//
// A threadgroup of four simdgroups per token: the first processes the latent row, simdgroup s the
// query heads s, s + 4, ... Threadgroup memory: 4 * max(rank, 2 * pairs) * 4 bytes. Limit:
// bandwidth.
#include "kernels/metal/shaders/head_rows.msl"
#include "kernels/metal/shaders/pages.msl"
#include "kernels/metal/qkv_params.h"

using namespace octavo::metal;

template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(kRowSimdgroups * 32)]] void latent_write(
    const device T* q [[buffer(0)]],       // [T, heads, q_dim]
    const device T* latent [[buffer(1)]],  // [T, rank + 2 * pairs]
    const device W* norm [[buffer(2)]],    // [rank]
    const device float* rotations [[buffer(3)]],  // [T, 2, pairs]
    const device int* cu_seqlens_q [[buffer(4)]],
    const device int* context_lens [[buffer(5)]],
    const device int* block_tables [[buffer(6)]],
    device T* q_out [[buffer(7)]],  // [T, heads, rank + 2 * pairs]; writes the rotated part
    device uchar* pages [[buffer(8)]],
    constant LatentParams& params [[buffer(9)]],
    threadgroup float* rows [[threadgroup(0)]],
    uint token [[threadgroup_position_in_grid]],
    ushort simdgroup_index [[simdgroup_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]) {
  const int rank = params.rank;
  const int pairs = params.pairs;
  const int ends = 2 * pairs;
  threadgroup float* row = rows + simdgroup_index * max(rank, ends);
  const device float* turns = rotations + ulong(token) * 2 * pairs;
  if (simdgroup_index == 0) {
    const int sequence = sequence_of(cu_seqlens_q, params.sequences, int(token));
    const int place = context_lens[sequence] - (cu_seqlens_q[sequence + 1] - int(token));
    const device int* table = block_tables + sequence * params.pages.table_columns;
    const int slot = place % params.pages.block_tokens;
    device T* key = (device T*)(pages + head_offset(table, params.pages, place, 0));
    key += slot * (rank + ends);
    const device T* own = latent + ulong(token) * (rank + ends);
    load_head(own, rank, row, lane);
    scale_head<T>(row, rank, norm_factor(own, rank, params.eps, lane), norm, lane);
    store_head(row, rank, key, lane);
    load_head(own + rank, ends, row, lane);
    rotate_head<T>(row, pairs, turns, lane);
    store_head(row, ends, key + rank, lane);
  }
  for (int h = simdgroup_index; h < params.heads; h += kRowSimdgroups) {
    const ulong head = ulong(token) * params.heads + h;
    load_head(q + (head + 1) * params.q_dim - ends, ends, row, lane);
    rotate_head<T>(row, pairs, turns, lane);
    store_head(row, ends, q_out + head * (rank + ends) + rank, lane);
  }
}
