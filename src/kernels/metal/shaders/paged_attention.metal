// paged_attention.metal - causal attention over paged keys and values by the matrix units, for
// prefill and for decode with many columns (decode_attention.metal: few columns).
//
// A threadgroup of four simdgroups (eight for values wider than 256) processes one item: up to
// kTiles * 8 columns (row, query head) of one sequence that share a KV head, over splits of 128
// keys at absolute positions. Per split:
//   scores   simdgroup s processes key tiles s, s + 4, ...: K q^T, 8 keys x 8 dims at a time, so
//            that K loads as it is stored. Each K element is read once for all columns;
//   softmax  attention_split.msl;
//   values   simdgroup s processes value tiles s, s + 4, ...: each V element is read once for all
//            columns.
// Then the split is merged into the item's state (attention_fold.msl), in registers. Every 8 x 8
// product is the same sequence of multiply-accumulates for any number of columns, so a row's bits do
// not depend on its batch, provided that each row of the hardware's product depends only on that
// row.
//
// Threadgroup memory: matrix_bytes(); 27 KiB for 32 columns of 128 16-bit elements. Registers:
// kTiles * kValueDim / 16 floats of state per lane, half of it for wide values. Limit: decode reads
// each K and V element once per KV head: bandwidth. Prefill does 4 * kTiles multiply-accumulates
// per (kTiles + 1) tile loads: compute-bound from 32 columns on.
#include "kernels/metal/shaders/attention_split.msl"

#include <metal_simdgroup_matrix>

// Row and column of the two elements of an 8 x 8 matrix that a lane holds. Metal does not specify
// them, so they are read from a matrix of known numbers; every element type has the same.
struct Fragment {
  int row[2];
  int column[2];
};
inline Fragment fragment_of(const threadgroup float* indices) {
  simdgroup_float8x8 matrix;
  simdgroup_load(matrix, indices, ulong(8));
  Fragment fragment;
  UNROLL
  for (int i = 0; i < 2; ++i) {
    const int index = int(matrix.thread_elements()[i]);
    fragment.row[i] = index / 8;
    fragment.column[i] = index % 8;
  }
  return fragment;
}

// The rows of eight keys of one head, in a page.
struct KeyTile {
  const device uchar* rows;
  int stride;  // elements from one key to the next
  int keys;    // below 8: the rest is past the context and counts as zero
};
template <typename T>
inline KeyTile key_tile(Item item, int position, int first_byte, int stride, int last_position) {
  KeyTile tile;
  tile.rows = page_head(item, position) + first_byte +
              position % kBlockTokens * stride * number_bytes<T>();
  tile.stride = stride;
  tile.keys = min(8, last_position + 1 - position);
  return tile;
}

// Columns [column, column + 8) of the tile as an 8 x 8 matrix with keys as rows.
template <typename T>
inline void load_tile(thread simdgroup_matrix<T, 8, 8>& matrix, KeyTile tile, int column,
                      Fragment fragment) {
  if (!kInt8 && tile.keys == 8) {
    simdgroup_load(matrix, (const device T*)tile.rows + column, ulong(tile.stride));
    return;
  }
  UNROLL
  for (int i = 0; i < 2; ++i) {
    const int key = fragment.row[i];
    const int at = key * tile.stride + column + fragment.column[i];
    T number = T(0.0f);
    if (key < tile.keys) {
      number = kInt8 ? T(float(((const device char*)tile.rows)[at]))
                     : ((const device T*)tile.rows)[at];
    }
    matrix.thread_elements()[i] = number;
  }
}

// The scores of eight keys: the chains of every tile of columns, then their sums.
template <typename T, int kKeyDim, int kTiles, int kStride>
inline void score_tile(KeyTile keys, const threadgroup T* queries, threadgroup float* scores,
                       Fragment fragment) {
  constexpr int kStep = kScoreChains * 8;
  simdgroup_float8x8 sums[kTiles][kScoreChains];
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int j = 0; j < kScoreChains; ++j)
      sums[t][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  for (int first = 0; first < kKeyDim; first += kStep) {
    UNROLL
    for (int j = 0; j < kScoreChains; ++j) {
      const int d = first + j * 8;
      if (kKeyDim % kStep != 0 && d >= kKeyDim) continue;
      simdgroup_matrix<T, 8, 8> key;
      load_tile(key, keys, d, fragment);
      UNROLL
      for (int t = 0; t < kTiles; ++t) {
        simdgroup_matrix<T, 8, 8> query;
        simdgroup_load(query, queries + d * kStride + t * 8, ulong(kStride));
        simdgroup_multiply_accumulate(sums[t][j], key, query, sums[t][j]);
      }
    }
  }
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int i = 0; i < 2; ++i) {
      const float low = sums[t][0].thread_elements()[i] + sums[t][1].thread_elements()[i];
      const float high = sums[t][2].thread_elements()[i] + sums[t][3].thread_elements()[i];
      scores[(t * 8 + fragment.column[i]) * kScoreStride + fragment.row[i]] = low + high;
    }
  }
}

template <typename T, int kKeyDim, int kValueDim, int kTiles>
[[kernel, max_total_threads_per_threadgroup(256)]] void paged_attention(
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
  constexpr int kSimdgroups = matrix_simdgroups(kValueDim);
  constexpr int kThreads = kSimdgroups * kSimdWidth;
  constexpr int kColumns = kTiles * kTileColumns;
  constexpr int kValueTiles = kValueDim / 8;
  constexpr int kOwnTiles = (kValueTiles + kSimdgroups - 1) / kSimdgroups;
  constexpr int kQueryStride = query_stride(kKeyDim, kColumns, sizeof(T));
  constexpr int kWeightStride = kScoreStride * sizeof(float) / sizeof(T);

  threadgroup T queries[kKeyDim * kQueryStride];  // [dim][column]
  threadgroup float scores[kColumns * kScoreStride];
  threadgroup float column_state[kColumns * kStateFloats];
  threadgroup float indices[64];

  const int thread_index = simdgroup_index * kSimdWidth + lane;
  const Item item = item_at(items, pages, block_tables, params, group_at);
  const int columns = item.grid->columns;
  Columns<T> own;
  own.scores = scores;
  own.state = column_state;

  for (int i = thread_index; i < kColumns * kKeyDim; i += kThreads) {
    const int column = i / kKeyDim;
    T number = T(0.0f);
    if (column < columns) number = q[row_of(item, column) * kKeyDim + i % kKeyDim];
    queries[i % kKeyDim * kQueryStride + column] = number;
  }
  for (int i = thread_index; i < kColumns; i += kThreads) {
    column_state[i * kStateFloats] = kNothing;
    column_state[i * kStateFloats + 1] = 0;
  }
  if (thread_index < 64) indices[thread_index] = float(thread_index);
  float state[kTiles][kOwnTiles][2];
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int v = 0; v < kOwnTiles; ++v) state[t][v][0] = state[t][v][1] = 0;
  }
  const Visible seen = seen_by(item);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const Fragment fragment = fragment_of(indices);

  for (int split = item.grid->split_begin; split < item.grid->split_end; ++split) {
    const SplitTiles tiles = tiles_of(split, seen);
    for (int k = tiles.begin + simdgroup_index; k < tiles.end; k += kSimdgroups) {
      const KeyTile keys = key_tile<T>(item, tiles.base + k * 8, 0, kKeyDim, seen.last);
      score_tile<T, kKeyDim, kTiles, kQueryStride>(keys, queries, scores + k * 8, fragment);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    split_softmax(own, item, tiles.base, kColumns, kSimdgroups, simdgroup_index, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    simdgroup_float8x8 values[kTiles][kOwnTiles];
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int v = 0; v < kOwnTiles; ++v)
        values[t][v] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k = tiles.begin; k < tiles.end; ++k) {
      const int first_byte = params.pages.v_first;
      const int stride = first_byte == 0 ? kKeyDim : kValueDim;  // values in keys: K's rows
      const KeyTile rows = key_tile<T>(item, tiles.base + k * 8, first_byte, stride, seen.last);
      simdgroup_matrix<T, 8, 8> weight[kTiles];
      UNROLL
      for (int t = 0; t < kTiles; ++t)
        simdgroup_load(weight[t], weights_of(own, t * 8) + k * 8, ulong(kWeightStride));
      UNROLL
      for (int v = 0; v < kOwnTiles; ++v) {
        const int tile = v * kSimdgroups + simdgroup_index;
        if (tile < kValueTiles) {
          simdgroup_matrix<T, 8, 8> value;
          load_tile(value, rows, tile * 8, fragment);
          UNROLL
          for (int t = 0; t < kTiles; ++t)
            simdgroup_multiply_accumulate(values[t][v], weight[t], value, values[t][v]);
        }
      }
    }
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int i = 0; i < 2; ++i) {
        const FoldFactors factors = factors_of(own, t * 8 + fragment.row[i]);
        UNROLL
        for (int v = 0; v < kOwnTiles; ++v)
          state[t][v][i] = fold(state[t][v][i], values[t][v].thread_elements()[i], factors);
      }
    }
    // The next split overwrites the weights.
    if (split + 1 < item.grid->split_end) threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int i = 0; i < 2; ++i) {
      const int column = t * 8 + fragment.row[i];
      if (column >= columns) continue;
      device float* partial = partials + partial_of(item, column, kValueDim);
      device T* target = out + row_of(item, column) * kValueDim;
      const bool is_partial = item.grid->partial >= 0;
      float factor = 1;
      if (!is_partial) factor = finish(own, column, kHasSinks ? sinks[head_of(item, column)] : 0);
      UNROLL
      for (int v = 0; v < kOwnTiles; ++v) {
        const int tile = v * kSimdgroups + simdgroup_index;
        const int d = tile * 8 + fragment.column[i];
        if (tile < kValueTiles && !is_partial) {
          target[d] = T(state[t][v][i] * factor);
        } else if (tile < kValueTiles) {
          partial[d] = state[t][v][i];
        }
      }
      if (is_partial && simdgroup_index == 0 && fragment.column[i] == 0) {
        partial[kValueDim] = column_state[column * kStateFloats];
        partial[kValueDim + 1] = column_state[column * kStateFloats + 1];
      }
    }
  }
}
