// paged_attention.metal - causal attention over paged keys and values, for prefill and decode.
//
// A threadgroup of four simdgroups processes one item: up to kTiles * 8 columns (row, query head)
// of one sequence that share a KV head, over splits of 128 keys at absolute positions. Per split:
//   scores   simdgroup s processes key tiles s, s + 4, ...: 8 keys x 8 dims at a time, each K
//            element is read once for all columns;
//   softmax  sixteen lanes per column, sums as a tree;
//   values   simdgroup s processes value tiles s, s + 4, ...: each V element is read once for all
//            columns.
// Then the split is merged into the item's state (attention_fold.msl). Every 8 x 8 product is the
// same sequence of multiply-accumulates for any number of columns, so a row's bits do not depend on
// its batch, provided that each row of the hardware's product depends only on that row.
//
// Threadgroup memory: kTiles * 8 * (kKeyDim * sizeof(T) + 128 * 4) bytes and 2 KiB; 26 KiB for 32
// columns of 128 16-bit elements. Registers: kTiles * kValueDim / 16 floats of state per lane.
// Limit: decode reads each K and V element once per KV head: bandwidth. Prefill does 4 * kTiles
// multiply-accumulates per (kTiles + 1) tile loads: compute-bound from 32 columns on.
#include "kernels/metal/shaders/attention_fold.msl"
#include "kernels/metal/attention_params.h"
#include "kernels/metal/shaders/pages.msl"

#include <metal_simdgroup_matrix>

using namespace octavo::metal;

constant bool kInt8 [[function_constant(0)]];
constant bool kHasSoftCap [[function_constant(1)]];
constant bool kHasWindow [[function_constant(2)]];
constant bool kHasSinks [[function_constant(3)]];

constant constexpr int kKeyTiles = kSplitKeys / 8;
constant constexpr int kRowLanes = 16;  // lanes that share a column's softmax
constant constexpr int kLaneKeys = kSplitKeys / kRowLanes;

// The rows of eight keys of one head, in a page.
template <typename T>
struct KeyTile {
  const device uchar* rows;
  int stride;  // elements from one key to the next
  int keys;    // below 8: the rest is past the context and counts as zero
};

// Columns [column, column + 8) of the tile as an 8 x 8 matrix with keys as rows, or transposed.
// int8 and incomplete tiles go through `staging` (64 elements per simdgroup).
template <bool kTurned, typename T>
inline void load_tile(thread simdgroup_matrix<T, 8, 8>& matrix, KeyTile<T> tile, int column,
                      threadgroup T* staging, ushort lane) {
  if (!kInt8 && tile.keys == 8) {
    const device T* numbers = (const device T*)tile.rows + column;
    simdgroup_load(matrix, numbers, ulong(tile.stride), ulong2(0, 0), kTurned);
    return;
  }
  UNROLL
  for (int i = lane; i < 64; i += kSimdWidth) {
    const int key = i / 8;
    const int at = key * tile.stride + column + i % 8;
    T number = T(0.0f);
    if (key < tile.keys) {
      number = kInt8 ? T(float(((const device char*)tile.rows)[at]))
                     : ((const device T*)tile.rows)[at];
    }
    staging[i] = number;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(matrix, staging, ulong(8), ulong2(0, 0), kTurned);
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

// Positions visible to a column: [first, last].
struct Visible {
  int first;
  int last;
};
inline Visible visible_to(int position, int window) {
  Visible v;
  v.last = position;
  v.first = kHasWindow ? max(0, position - window + 1) : 0;
  return v;
}

template <typename T, int kKeyDim, int kValueDim, int kTiles>
[[kernel, max_total_threads_per_threadgroup(kAttentionSimdgroups * 32)]] void paged_attention(
    const device T* q [[buffer(0)]],               // [rows, q_heads, kKeyDim]
    const device uchar* pages [[buffer(1)]],
    const device int* block_tables [[buffer(2)]],  // [sequences, table_columns]
    const device int* items [[buffer(3)]],         // GridItem each
    const device float* sinks [[buffer(4), function_constant(kHasSinks)]],  // [q_heads]
    device T* out [[buffer(5)]],                   // [rows, q_heads, kValueDim]
    device float* partials [[buffer(6)]],          // [kv_heads][partial_stride]
    constant AttentionParams& params [[buffer(7)]],
    uint2 group_at [[threadgroup_position_in_grid]],
    ushort simdgroup_index [[simdgroup_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]) {
  constexpr int kColumns = kTiles * kTileColumns;
  constexpr int kValueTiles = kValueDim / 8;
  constexpr int kOwnTiles = (kValueTiles + kAttentionSimdgroups - 1) / kAttentionSimdgroups;
  // A column's weights, as T, overlay the start of its scores.
  constexpr int kWeightStride = kSplitKeys * sizeof(float) / sizeof(T);

  threadgroup T queries[kColumns * kKeyDim];
  threadgroup float scores[kColumns * kSplitKeys];
  threadgroup T staging[kAttentionSimdgroups * 64];
  threadgroup float products[kAttentionSimdgroups * 64];
  threadgroup float state_max[kColumns];
  threadgroup float state_sum[kColumns];
  threadgroup float keep[kColumns];
  threadgroup float take[kColumns];
  threadgroup T* weights = (threadgroup T*)scores;
  threadgroup T* own_staging = staging + simdgroup_index * 64;
  threadgroup float* own_product = products + simdgroup_index * 64;

  const int thread_index = simdgroup_index * kSimdWidth + lane;
  constexpr int kThreads = kAttentionSimdgroups * kSimdWidth;
  const device GridItem& item = ((const device GridItem*)items)[group_at.x];
  const int kv_head = group_at.y;
  const int group = params.q_heads / params.kv_heads;
  const device int* table = block_tables + item.sequence * params.pages.table_columns;
  const int first_column = item.column_begin;
  const int columns = item.columns;

  for (int i = thread_index; i < kColumns * kKeyDim; i += kThreads) {
    const int column = i / kKeyDim;
    T number = T(0.0f);
    if (column < columns) {
      const int at = first_column + column;
      const ulong head = ulong(item.first_row + at / group) * params.q_heads +
                         kv_head * group + at % group;
      number = q[head * kKeyDim + i % kKeyDim];
    }
    queries[i] = number;
  }
  for (int i = thread_index; i < kColumns; i += kThreads) {
    state_max[i] = kNothing;
    state_sum[i] = 0;
  }
  float state[kTiles][kOwnTiles][2];
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int v = 0; v < kOwnTiles; ++v) state[t][v][0] = state[t][v][1] = 0;
  }

  // The first position of the item's first column and the last position of its last.
  const int last_position = item.position + (first_column + columns - 1) / group;
  const int first_position = visible_to(item.position + first_column / group, params.window).first;
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (int split = item.split_begin; split < item.split_end; ++split) {
    const int base = split * kSplitKeys;
    // Key tiles visible to any column.
    const int tile_begin = max(0, first_position - base) / 8;
    const int tile_end = min(kKeyTiles, (last_position - base) / 8 + 1);

    for (int k = tile_begin + simdgroup_index; k < tile_end; k += kAttentionSimdgroups) {
      const int position = base + k * 8;
      const device uchar* head = pages + head_offset(table, params.pages, position, kv_head);
      const int slot = position % params.pages.block_tokens;
      KeyTile<T> keys;
      keys.stride = kKeyDim;
      keys.keys = min(8, last_position + 1 - position);
      keys.rows = head + slot * kKeyDim * (kInt8 ? 1 : int(sizeof(T)));
      simdgroup_float8x8 sums[kTiles];
      UNROLL
      for (int t = 0; t < kTiles; ++t) sums[t] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (int d = 0; d < kKeyDim; d += 8) {
        simdgroup_matrix<T, 8, 8> key;
        load_tile<true>(key, keys, d, own_staging, lane);
        UNROLL
        for (int t = 0; t < kTiles; ++t) {
          simdgroup_matrix<T, 8, 8> query;
          simdgroup_load(query, queries + t * 8 * kKeyDim + d, ulong(kKeyDim));
          simdgroup_multiply_accumulate(sums[t], query, key, sums[t]);
        }
      }
      UNROLL
      for (int t = 0; t < kTiles; ++t)
        simdgroup_store(sums[t], scores + t * 8 * kSplitKeys + k * 8, ulong(kSplitKeys));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const int row_lane = lane % kRowLanes;
    for (int column = simdgroup_index * 2 + lane / kRowLanes; column < kColumns;
         column += kAttentionSimdgroups * 2) {
      const int position = item.position + (first_column + column) / group;
      const Visible visible = visible_to(position, params.window);
      float score[kLaneKeys];
      float highest = kNothing;
      UNROLL
      for (int i = 0; i < kLaneKeys; ++i) {
        const int key = i * kRowLanes + row_lane;
        const int at = base + key;
        score[i] = kNothing;
        if (column >= columns || at < visible.first || at > visible.last) continue;
        float value = scores[column * kSplitKeys + key];
        if (kInt8) {
          const device uchar* head = pages + head_offset(table, params.pages, at, kv_head);
          const device float* scales = (const device float*)(head + params.pages.k_scales);
          value *= scales[at % params.pages.block_tokens];
        }
        value *= params.scale;
        if (kHasSoftCap) value = params.soft_cap * precise::tanh(value / params.soft_cap);
        score[i] = value * kLog2E;
        highest = max(highest, score[i]);
      }
      for (ushort distance = kRowLanes / 2; distance > 0; distance >>= 1)
        highest = max(highest, simd_shuffle_xor(highest, distance));
      float sum = 0;
      simdgroup_barrier(mem_flags::mem_threadgroup);  // all have read what the weights overwrite
      UNROLL
      for (int i = 0; i < kLaneKeys; ++i) {
        const int key = i * kRowLanes + row_lane;
        const int at = base + key;
        float weight = score[i] == kNothing ? 0.0f : precise::exp2(score[i] - highest);
        sum += weight;
        if (kInt8 && weight > 0) {
          const device uchar* head = pages + head_offset(table, params.pages, at, kv_head);
          const device float* scales = (const device float*)(head + params.pages.v_scales);
          weight *= scales[at % params.pages.block_tokens];
        }
        weights[column * kWeightStride + key] = T(weight);
      }
      for (ushort distance = kRowLanes / 2; distance > 0; distance >>= 1)
        sum += simd_shuffle_xor(sum, distance);
      if (row_lane == 0) {
        const FoldFactors factors = fold_factors(state_max[column], highest);
        state_max[column] = factors.new_max;
        state_sum[column] = fold(state_sum[column], sum, factors);
        keep[column] = factors.keep;
        take[column] = factors.take;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    simdgroup_float8x8 values[kTiles][kOwnTiles];
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int v = 0; v < kOwnTiles; ++v)
        values[t][v] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k = tile_begin; k < tile_end; ++k) {
      const int position = base + k * 8;
      const device uchar* head = pages + head_offset(table, params.pages, position, kv_head);
      const int slot = position % params.pages.block_tokens;
      KeyTile<T> rows;
      rows.stride = params.pages.v_first == 0 ? kKeyDim : kValueDim;  // values in keys: K's rows
      rows.keys = min(8, last_position + 1 - position);
      rows.rows = head + params.pages.v_first + slot * rows.stride * (kInt8 ? 1 : int(sizeof(T)));
      simdgroup_matrix<T, 8, 8> weight[kTiles];
      UNROLL
      for (int t = 0; t < kTiles; ++t)
        simdgroup_load(weight[t], weights + t * 8 * kWeightStride + k * 8, ulong(kWeightStride));
      UNROLL
      for (int v = 0; v < kOwnTiles; ++v) {
        const int tile = v * kAttentionSimdgroups + simdgroup_index;
        if (tile < kValueTiles) {
          simdgroup_matrix<T, 8, 8> value;
          load_tile<false>(value, rows, tile * 8, own_staging, lane);
          UNROLL
          for (int t = 0; t < kTiles; ++t)
            simdgroup_multiply_accumulate(values[t][v], weight[t], value, values[t][v]);
        }
      }
    }
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const int column = t * 8 + lane / 4;
      FoldFactors factors;
      factors.keep = keep[column];
      factors.take = take[column];
      UNROLL
      for (int v = 0; v < kOwnTiles; ++v) {
        simdgroup_store(values[t][v], own_product, ulong(8));
        simdgroup_barrier(mem_flags::mem_threadgroup);
        UNROLL
        for (int i = 0; i < 2; ++i)
          state[t][v][i] = fold(state[t][v][i], own_product[lane * 2 + i], factors);
        simdgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  const int first_dim = lane % 4 * 2;
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const int column = t * 8 + lane / 4;
    if (column >= columns) continue;
    const int at = first_column + column;
    const int head = kv_head * group + at % group;
    device float* partial = partials + ulong(kv_head) * params.partial_stride +
                            (ulong(max(item.partial, 0)) * kTileColumns + column) * (kValueDim + 2);
    device T* target = out + (ulong(item.first_row + at / group) * params.q_heads + head) * kValueDim;
    float factor = 1;
    if (item.partial < 0) {
      factor = kHasSinks ? final_factor(state_max[column], state_sum[column], sinks[head])
                         : final_factor(state_sum[column]);
    }
    UNROLL
    for (int v = 0; v < kOwnTiles; ++v) {
      const int tile = v * kAttentionSimdgroups + simdgroup_index;
      UNROLL
      for (int i = 0; i < 2; ++i) {
        const int d = tile * 8 + first_dim + i;
        if (tile < kValueTiles && item.partial < 0) {
          target[d] = T(state[t][v][i] * factor);
        } else if (tile < kValueTiles) {
          partial[d] = state[t][v][i];
        }
      }
    }
    if (item.partial >= 0 && simdgroup_index == 0 && lane % 4 == 0) {
      partial[kValueDim] = state_max[column];
      partial[kValueDim + 1] = state_sum[column];
    }
  }
}
