// paged_attention.metal - attention over paged keys and values by the matrix units, for
// prefill and for decode with many columns (decode_attention.metal: few columns).
//
// A threadgroup of eight simdgroups (four for values of less than 64) processes one item: up to
// kTiles * 8 columns (row, query head) of one sequence that share a KV head, over splits of 128
// keys at absolute positions. Per split:
//   scores   a simdgroup processes two tiles of keys in each of its parts of the sum: K q^T, 8 keys x
//            8 dims at a time. Each K element is read once for all columns, in loads of 16 bytes.
//            Scores stay in registers; only the maxima of columns pass through threadgroup memory;
//   weights  are written as T, and the sums of parts;
//   values   a simdgroup processes value tiles, up to four per load: each V element is read once for
//            all columns.
// Then each lane merges the split into the item's state (attention_fold.msl), in registers: two
// barriers per split. Every 8 x 8 product is the same sequence of multiply-accumulates for any number
// of columns, so a row's bits do not depend on its batch, provided that each row of the hardware's
// product depends only on that row.
//
// Threadgroup memory: at most matrix_bytes(); 21.5 KiB for 32 columns of 128 16-bit elements. Registers:
// kTiles * kValueDim / 32 floats of state per lane, 4 * kTiles scores and 8 * kTiles sums of products.
// Limit: decode reads each K and V element once per KV head: bandwidth. Prefill does 4 * kTiles
// multiply-accumulates per (kTiles + 1) tile loads: compute-bound from 32 columns on.
#include "kernels/metal/shaders/attention_split.msl"
#include "kernels/metal/shaders/matrix_lanes.msl"

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

// 2 * kPairs adjacent elements of key `key` of the tile, from `column` on.
template <typename T, int kPairs>
inline void load_key(thread NumberPair<T> (&pairs)[kPairs], KeyTile tile, int key, int column,
                     bool is_there) {
  if (!is_there || key >= tile.keys) {
    UNROLL
    for (int i = 0; i < kPairs; ++i) pairs[i] = pair_of<T>(T(0.0f), T(0.0f));
    return;
  }
  const int at = key * tile.stride + column;
  if (kInt8) {
    load_int8_pairs<T, kPairs>(pairs, (const device char*)tile.rows + at);
  } else {
    PairLoad<T, kPairs>::run(pairs, (const device T*)tile.rows + at);
  }
}

// The products of eight keys with every tile of columns: four chains, then their sums.
template <typename T, int kKeyDim, int kTiles, int kStride>
inline void score_tile(KeyTile keys, const threadgroup T* queries, MatrixLane own,
                       thread float (&scores)[kTiles][2]) {
  constexpr int kStep = kScoreChains * 8;
  simdgroup_float8x8 sums[kTiles][kScoreChains];
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int j = 0; j < kScoreChains; ++j)
      sums[t][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  for (int first = 0; first < kKeyDim; first += kStep) {
    NumberPair<T> pairs[kScoreChains];
    const int own_eight = first + own.pair * 8;
    load_key<T, kScoreChains>(pairs, keys, own.row, own_eight,
                              kKeyDim % kStep == 0 || own_eight < kKeyDim);
    deal_pairs<T>(pairs, own.pair);
    UNROLL
    for (int j = 0; j < kScoreChains; ++j) {
      const int d = first + j * 8;
      if (kKeyDim % kStep != 0 && d >= kKeyDim) continue;
      simdgroup_matrix<T, 8, 8> key;
      set_pair<T>(key, pairs[j]);
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
      scores[t][i] = low + high;
    }
  }
}

template <typename T, int kKeyDim, int kValueDim, int kTiles>
[[kernel, max_total_threads_per_threadgroup(256)]] void paged_attention(
    const device T* q [[buffer(0)]],               // [rows, q_heads, kKeyDim]
    const device uchar* pages [[buffer(1)]],
    const device int* block_tables [[buffer(2)]],  // [sequences, table_columns]
    const device int* items [[buffer(3)]],         // GridItem each
    const device int* last_visible [[buffer(4), function_constant(kHasLastVisible)]],  // [rows]
    const device float* sinks [[buffer(5), function_constant(kHasSinks)]],  // [q_heads]
    device T* out [[buffer(6)]],                   // [rows, q_heads, kValueDim]
    device float* partials [[buffer(7)]],          // [kv_heads][partial_stride]
    constant AttentionParams& params [[buffer(8)]],
    uint2 group_at [[threadgroup_position_in_grid]],
    ushort simdgroup_index [[simdgroup_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]]) {
  constexpr int kSimdgroups = matrix_simdgroups(kValueDim);
  constexpr int kThreads = kSimdgroups * kSimdWidth;
  constexpr int kColumns = kTiles * kTileColumns;
  constexpr int kOwnKeys = kKeyTiles / kSimdgroups;  // tiles
  constexpr int kOwnParts = kOwnKeys / 2;
  constexpr int kWide = value_tiles_at_once(kValueDim);
  constexpr int kValueBlocks = kValueDim / (8 * kWide);
  constexpr int kOwnBlocks = (kValueBlocks + kSimdgroups - 1) / kSimdgroups;
  constexpr int kQueryStride = query_stride(kKeyDim, kColumns, sizeof(T));
  constexpr int kWeightStride = kSplitKeys + kPadBytes / sizeof(T);

  threadgroup T queries[kKeyDim * kQueryStride];  // [dim][column]
  threadgroup T weights[kColumns * kWeightStride];
  // By split modulo 2, so that a split can write while the one before is still read.
  threadgroup float maxima[2 * kSimdgroups * kColumns];
  threadgroup float sums[kSumParts * kColumns];

  const int thread_index = simdgroup_index * kSimdWidth + lane;
  const MatrixLane own = matrix_lane(lane);
  Item item = item_at(items, pages, block_tables, params, group_at);
  if (kHasLastVisible) item.last_visible = last_visible + item.grid->first_row;
  const int columns = item.grid->columns;

  for (int i = thread_index; i < kColumns * (kKeyDim / 8); i += kThreads) {
    const int column = i % kColumns;
    const int first = i / kColumns * 8;
    T eight[8];
    UNROLL
    for (int e = 0; e < 8; ++e) eight[e] = T(0.0f);
    if (column < columns) {
      const device T* from = q + row_of(item, column) * kKeyDim + first;
      UNROLL
      for (int e = 0; e < 8; ++e) eight[e] = from[e];
    }
    UNROLL
    for (int e = 0; e < 8; ++e) queries[(first + e) * kQueryStride + column] = eight[e];
  }
  // Scores: a lane has key own.row of its tiles, and columns 8 t + 2 own.pair + i. Values: columns 8 t +
  // own.row, whose running maximum and sum it keeps.
  int last_seen[kTiles][2];
  int own_position[kTiles][2];  // where it may differ from last_seen
  float highest[kTiles];
  float sum[kTiles];
  float state[kTiles][kOwnBlocks * kWide][2];
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    UNROLL
    for (int i = 0; i < 2; ++i) {
      const int column = t * 8 + own.pair * 2 + i;
      last_seen[t][i] = column < columns ? last_of(item, column) : -1;
      if (kHasLastVisible) own_position[t][i] = position_of(item, column);
    }
    highest[t] = kNothing;
    sum[t] = 0;
    UNROLL
    for (int v = 0; v < kOwnBlocks * kWide; ++v) state[t][v][0] = state[t][v][1] = 0;
  }
  const Visible seen = seen_by(item);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (int split = item.grid->split_begin; split < item.grid->split_end; ++split) {
    const SplitTiles tiles = tiles_of(split, seen);
    threadgroup float* split_maxima = maxima + split % 2 * (kSimdgroups * kColumns);
    const int first_tile = simdgroup_index % 4 + simdgroup_index / 4 * kOwnKeys * 4;
    float scores[kOwnKeys][kTiles][2];
    UNROLL
    for (int m = 0; m < kOwnKeys; ++m) {
      const int tile = first_tile + 4 * m;
      UNROLL
      for (int t = 0; t < kTiles; ++t) scores[m][t][0] = scores[m][t][1] = kNothing;
      if (tile < tiles.begin || tile >= tiles.end) continue;
      const int position = tiles.base + tile * 8;
      const KeyTile keys = key_tile<T>(item, position, 0, kKeyDim, seen.last);
      score_tile<T, kKeyDim, kTiles, kQueryStride>(keys, queries, own, scores[m]);
      const int at = position + own.row;
      const float scale =
          kInt8 && at <= seen.last ? int8_scale(item, at, params.pages.k_scales) : 1.0f;
      UNROLL
      for (int t = 0; t < kTiles; ++t) {
        UNROLL
        for (int i = 0; i < 2; ++i) {
          const int last = last_seen[t][i];
          const int own_at = kHasLastVisible ? own_position[t][i] : last;
          const bool is_seen = at <= last && (!kHasWindow || at > own_at - params.window);
          const float value = kInt8 ? scores[m][t][i] * scale : scores[m][t][i];
          scores[m][t][i] = is_seen ? scaled_score(item, value) : kNothing;
        }
      }
    }
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int i = 0; i < 2; ++i) {
        float best = kNothing;
        UNROLL
        for (int m = 0; m < kOwnKeys; ++m) best = max(best, scores[m][t][i]);
        best = column_max(best);
        if (own.row == 0)
          split_maxima[simdgroup_index * kColumns + t * 8 + own.pair * 2 + i] = best;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float value_scales[kOwnKeys];
    UNROLL
    for (int m = 0; m < kOwnKeys; ++m) {
      const int tile = first_tile + 4 * m;
      const int at = tiles.base + tile * 8 + own.row;
      value_scales[m] = kInt8 && tile >= tiles.begin && tile < tiles.end && at <= seen.last
                            ? int8_scale(item, at, params.pages.v_scales)
                            : 1.0f;
    }
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int i = 0; i < 2; ++i) {
        const int column = t * 8 + own.pair * 2 + i;
        float best = kNothing;
        UNROLL
        for (int s = 0; s < kSimdgroups; ++s) best = max(best, split_maxima[s * kColumns + column]);
        UNROLL
        for (int p = 0; p < kOwnParts; ++p) {
          const float first = weight_of(scores[2 * p][t][i], best);
          const float second = weight_of(scores[2 * p + 1][t][i], best);
          const float part = column_sum(first + second);
          const int tile = first_tile + 8 * p;
          if (own.row == 0) sums[(tile / 8 * 4 + tile % 4) * kColumns + column] = part;
          threadgroup T* target = weights + column * kWeightStride + tile * 8 + own.row;
          target[0] = T(kInt8 && first > 0 ? first * value_scales[2 * p] : first);
          target[4 * 8] = T(kInt8 && second > 0 ? second * value_scales[2 * p + 1] : second);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    simdgroup_float8x8 values[kTiles][kOwnBlocks * kWide];
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      UNROLL
      for (int v = 0; v < kOwnBlocks * kWide; ++v)
        values[t][v] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    for (int k = tiles.begin; k < tiles.end; ++k) {
      const int first_byte = params.pages.v_first;
      const int stride = first_byte == 0 ? kKeyDim : kValueDim;  // values in keys: K's rows
      const KeyTile rows = key_tile<T>(item, tiles.base + k * 8, first_byte, stride, seen.last);
      simdgroup_matrix<T, 8, 8> weight[kTiles];
      UNROLL
      for (int t = 0; t < kTiles; ++t)
        simdgroup_load(weight[t], weights + t * 8 * kWeightStride + k * 8, ulong(kWeightStride));
      UNROLL
      for (int b = 0; b < kOwnBlocks; ++b) {
        const int block = b * kSimdgroups + simdgroup_index;
        if (block >= kValueBlocks) continue;
        NumberPair<T> pairs[kWide];
        load_key<T, kWide>(pairs, rows, own.row, (block * 4 + own.pair) * 2 * kWide, true);
        UNROLL
        for (int w = 0; w < kWide; ++w) {
          simdgroup_matrix<T, 8, 8> value;
          set_pair<T>(value, pairs[w]);
          const int v = b * kWide + w;
          UNROLL
          for (int t = 0; t < kTiles; ++t)
            simdgroup_multiply_accumulate(values[t][v], weight[t], value, values[t][v]);
        }
      }
    }
    UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const int column = t * 8 + own.row;
      float best = kNothing;
      UNROLL
      for (int s = 0; s < kSimdgroups; ++s) best = max(best, split_maxima[s * kColumns + column]);
      float parts[kSumParts];
      UNROLL
      for (int p = 0; p < kSumParts; ++p) parts[p] = sums[p * kColumns + column];
      const FoldFactors factors = fold_factors(highest[t], best);
      highest[t] = factors.new_max;
      sum[t] = fold(sum[t], sum_of_parts(parts), factors);
      UNROLL
      for (int v = 0; v < kOwnBlocks * kWide; ++v) {
        UNROLL
        for (int i = 0; i < 2; ++i)
          state[t][v][i] = fold(state[t][v][i], values[t][v].thread_elements()[i], factors);
      }
    }
  }

  const bool is_partial = item.grid->partial >= 0;
  UNROLL
  for (int t = 0; t < kTiles; ++t) {
    const int column = t * 8 + own.row;
    if (column >= columns) continue;
    device float* partial = partials + partial_of(item, column, kValueDim);
    device T* target = out + row_of(item, column) * kValueDim;
    float factor = 1;
    if (!is_partial)
      factor = finish(highest[t], sum[t], kHasSinks ? sinks[head_of(item, column)] : 0);
    UNROLL
    for (int v = 0; v < kOwnBlocks * kWide; ++v) {
      const int block = v / kWide * kSimdgroups + simdgroup_index;
      if (block >= kValueBlocks) continue;
      UNROLL
      for (int i = 0; i < 2; ++i) {
        const int d = (block * 4 + own.pair) * 2 * kWide + v % kWide * 2 + i;
        if (is_partial) {
          partial[d] = state[t][v][i];
        } else {
          target[d] = T(state[t][v][i] * factor);
        }
      }
    }
    if (is_partial && simdgroup_index == 0 && own.pair == 0) {
      partial[kValueDim] = highest[t];
      partial[kValueDim + 1] = sum[t];
    }
  }
}
