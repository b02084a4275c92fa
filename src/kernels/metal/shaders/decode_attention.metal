// decode_attention.metal - attention over paged keys and values for items with few columns:
// decode. It gives the bits of paged_attention.metal, which would pad the columns to eight.
//
// A threadgroup of four simdgroups processes one item: up to kColumns columns (row, query head) of
// one sequence that share a KV head, over splits of 128 keys at absolute positions. Per split:
//   scores   simdgroup s processes key tiles s, s + 4, ...: four lanes per key, one for each chain
//            of its score, 8 adjacent dims (16 bytes) per load. Several tiles share the queries;
//   softmax  sixteen lanes per column;
//   values   a thread per element of the head (two or four for wide heads), keys in order: the
//            matrix unit's chain.
// Each K and V element is read once for all columns and multiplied once per column.
//
// Threadgroup memory: decode_bytes(); 8 KiB for 8 columns of 128 elements. Registers: kColumns *
// kLaneTiles sums, then 2 * kColumns * kLaneValues values per lane. Limit: bandwidth.
#include "kernels/metal/shaders/attention_split.msl"

// The columns of an item in threadgroup memory.
template <typename T>
struct Columns {
  threadgroup float* scores;  // [column][kScoreStride]; a column's weights, as T, overlay its start
  threadgroup float* state;   // per column: highest score, sum, and the factors of the last fold
};
constant constexpr int kStateFloats = 4;
constant constexpr int kRowLanes = 16;  // lanes that share a column's softmax
constant constexpr int kLaneKeys = kSplitKeys / kRowLanes;

template <typename T>
inline threadgroup T* weights_of(Columns<T> columns, int column) {
  return (threadgroup T*)(columns.scores + column * kScoreStride);
}

template <typename T>
inline FoldFactors factors_of(Columns<T> columns, int column) {
  FoldFactors factors;
  factors.new_max = columns.state[column * kStateFloats];
  factors.keep = columns.state[column * kStateFloats + 2];
  factors.take = columns.state[column * kStateFloats + 3];
  return factors;
}

// The i-th key of a lane: row lane % 8 of two tiles in each of four parts.
inline int key_of_lane(int i, int row_lane) {
  const int tile = row_lane / 8 + i / 2 % 2 * 2 + i / 4 * 8 + i % 2 * 4;
  return tile * 8 + row_lane % 8;
}

// Replaces the scores of columns [0, width), which is even, by weights, and updates their state.
// Columns past the item's have weights of zero.
template <typename T>
inline void split_softmax(Columns<T> columns, Item item, int base, int width,
                          ushort simdgroup_index, ushort lane) {
  const int row_lane = lane % kRowLanes;
  for (int column = simdgroup_index * 2 + lane / kRowLanes; column < width;
       column += kAttentionSimdgroups * 2) {
    const Visible visible = visible_to(item, column);
    float score[kLaneKeys];
    float highest = kNothing;
    UNROLL
    for (int i = 0; i < kLaneKeys; ++i) {
      const int key = key_of_lane(i, row_lane);
      const int at = base + key;
      score[i] = kNothing;
      if (column >= item.grid->columns || at < visible.first || at > visible.last) continue;
      float value = columns.scores[column * kScoreStride + key];
      if (kInt8) value *= int8_scale(item, at, item.params->pages.k_scales);
      score[i] = scaled_score(item, value);
      highest = max(highest, score[i]);
    }
    for (ushort distance = kRowLanes / 2; distance > 0; distance >>= 1)
      highest = max(highest, simd_shuffle_xor(highest, distance));
    float parts[kLaneKeys / 2];
    simdgroup_barrier(mem_flags::mem_threadgroup);  // all have read what the weights overwrite
    UNROLL
    for (int i = 0; i < kLaneKeys; ++i) {
      const int key = key_of_lane(i, row_lane);
      const int at = base + key;
      float weight = weight_of(score[i], highest);
      parts[i / 2] = i % 2 == 0 ? weight : parts[i / 2] + weight;
      if (kInt8 && weight > 0) weight *= int8_scale(item, at, item.params->pages.v_scales);
      weights_of(columns, column)[key] = T(weight);
    }
    // The sum over rows, then of two parts: those of the lanes' first and second tile.
    UNROLL
    for (int i = 0; i < kLaneKeys / 2; ++i) {
      for (ushort distance = 4; distance > 0; distance >>= 1)
        parts[i] += simd_shuffle_xor(parts[i], distance);
      parts[i] += simd_shuffle_xor(parts[i], ushort(8));
    }
    const float sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    if (row_lane == 0) {
      threadgroup float* state = columns.state + column * kStateFloats;
      const FoldFactors factors = fold_factors(state[0], highest);
      state[0] = factors.new_max;
      state[1] = fold(state[1], sum, factors);
      state[2] = factors.keep;
      state[3] = factors.take;
    }
  }
}

struct Eight {
  float4 low;
  float4 high;
};
template <typename N>
inline float4 four_of(vec<N, 4> v) {
  return float4(float(v.x), float(v.y), float(v.z), float(v.w));
}
// Eight adjacent numbers, as wide a load as possible.
template <typename T>
inline Eight load_eight(const device T* from) {
  const uint4 bits = *(const device uint4*)from;
  Eight eight;
  eight.low = four_of<T>(as_type<vec<T, 4>>(bits.xy));
  eight.high = four_of<T>(as_type<vec<T, 4>>(bits.zw));
  return eight;
}
template <>
inline Eight load_eight<float>(const device float* from) {
  Eight eight;
  eight.low = *(const device float4*)from;
  eight.high = *(const device float4*)(from + 4);
  return eight;
}
template <>
inline Eight load_eight<char>(const device char* from) {
  const uint2 bits = *(const device uint2*)from;
  Eight eight;
  eight.low = four_of<char>(as_type<char4>(bits.x));
  eight.high = four_of<char>(as_type<char4>(bits.y));
  return eight;
}

// kCount adjacent numbers in one load.
template <typename N, int kCount>
struct Numbers {
  static void load(thread float* to, const device N* from) {
    const vec<N, kCount> v = *(const device vec<N, kCount>*)from;
    UNROLL
    for (int i = 0; i < kCount; ++i) to[i] = float(v[i]);
  }
};
template <typename N>
struct Numbers<N, 1> {
  static void load(thread float* to, const device N* from) { to[0] = float(*from); }
};

inline float chain(float4 a, float4 b, float sum) {
  UNROLL
  for (int i = 0; i < 4; ++i) sum = fma(a[i], b[i], sum);
  return sum;
}

// Adds the chains of kTiles keys, which four adjacent lanes hold. A lane receives the score of key
// own_key<kTiles>(lane).
template <int kTiles>
inline float add_chains(const thread float* sums, ushort lane) {
  static_assert(kTiles == 2 || kTiles == 4, "two or four keys per lane");
  const bool odd = (lane & 1) != 0;
  const bool high = (lane & 2) != 0;
  if (kTiles == 2) {
    const float kept = odd ? sums[1] : sums[0];
    const float sum = kept + simd_shuffle_xor(odd ? sums[0] : sums[1], ushort(1));
    return sum + simd_shuffle_xor(sum, ushort(2));
  }
  float pair[2];
  UNROLL
  for (int i = 0; i < 2; ++i) {
    const float kept = odd ? sums[kTiles - 2 + i] : sums[i];
    pair[i] = kept + simd_shuffle_xor(odd ? sums[i] : sums[kTiles - 2 + i], ushort(1));
  }
  return (high ? pair[1] : pair[0]) + simd_shuffle_xor(high ? pair[0] : pair[1], ushort(2));
}
template <int kTiles>
inline int own_key(ushort lane) {
  return kTiles == 2 ? lane & 1 : (lane & 1) * 2 + (lane >> 1 & 1);
}

template <typename T, int kKeyDim, int kValueDim, int kColumns>
[[kernel, max_total_threads_per_threadgroup(kAttentionSimdgroups * 32)]] void decode_attention(
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
  constexpr int kThreads = kAttentionSimdgroups * kSimdWidth;
  constexpr int kLaneTiles = kColumns > 8 ? 2 : 4;  // at a time
  constexpr int kLaneValues = decode_values(kValueDim);

  threadgroup float4 queries[kColumns * kKeyDim / 4];
  threadgroup float4 scores[kColumns * kScoreStride / 4];
  threadgroup float column_state[kColumns * kStateFloats];

  const int thread_index = simdgroup_index * kSimdWidth + lane;
  Item item = item_at(items, pages, block_tables, params, group_at);
  if (kHasLastVisible) item.last_visible = last_visible + item.grid->first_row;
  const int columns = item.grid->columns;
  Columns<T> own;
  own.scores = (threadgroup float*)scores;
  own.state = column_state;

  for (int i = thread_index; i < columns * kKeyDim; i += kThreads)
    ((threadgroup float*)queries)[i] = float(q[row_of(item, i / kKeyDim) * kKeyDim + i % kKeyDim]);
  for (int i = thread_index; i < kColumns; i += kThreads) {
    column_state[i * kStateFloats] = kNothing;
    column_state[i * kStateFloats + 1] = 0;
  }
  const int first_value = thread_index * kLaneValues;
  float state[kColumns][kLaneValues];
  UNROLL
  for (int c = 0; c < kColumns; ++c) {
    UNROLL
    for (int e = 0; e < kLaneValues; ++e) state[c][e] = 0;
  }
  const Visible seen = seen_by(item);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (int split = item.grid->split_begin; split < item.grid->split_end; ++split) {
    const SplitTiles tiles = tiles_of(split, seen);
    for (int first = tiles.begin + simdgroup_index; first < tiles.end;
         first += kLaneTiles * kAttentionSimdgroups) {
      const device uchar* rows[kLaneTiles];
      bool is_seen[kLaneTiles];
      float sums[kColumns][kLaneTiles];
      UNROLL
      for (int i = 0; i < kLaneTiles; ++i) {
        const int tile = first + i * kAttentionSimdgroups;
        const int position = tiles.base + tile * 8 + lane / 4;
        is_seen[i] = tile < tiles.end && position <= seen.last;
        rows[i] = pages;
        if (is_seen[i]) {
          rows[i] = page_head(item, position) +
                    position % kBlockTokens * kKeyDim * number_bytes<T>();
        }
        UNROLL
        for (int c = 0; c < kColumns; ++c) sums[c][i] = 0;
      }
      for (int d = lane % 4 * 8; d < kKeyDim; d += kScoreChains * 8) {
        Eight keys[kLaneTiles];
        UNROLL
        for (int i = 0; i < kLaneTiles; ++i) {
          keys[i].low = keys[i].high = float4(0.0f);
          if (!is_seen[i]) continue;
          keys[i] = kInt8 ? load_eight<char>((const device char*)rows[i] + d)
                          : load_eight<T>((const device T*)rows[i] + d);
        }
        UNROLL
        for (int c = 0; c < kColumns; ++c) {
          if (c >= columns) continue;
          const float4 low = queries[(c * kKeyDim + d) / 4];
          const float4 high = queries[(c * kKeyDim + d) / 4 + 1];
          UNROLL
          for (int i = 0; i < kLaneTiles; ++i)
            sums[c][i] = chain(high, keys[i].high, chain(low, keys[i].low, sums[c][i]));
        }
      }
      const int tile = first + own_key<kLaneTiles>(lane) * kAttentionSimdgroups;
      const bool stores = tile < tiles.end && (kLaneTiles == 4 || (lane & 2) == 0);
      UNROLL
      for (int c = 0; c < kColumns; ++c) {
        if (c >= columns) continue;
        const float score = add_chains<kLaneTiles>(sums[c], lane);
        if (stores) own.scores[c * kScoreStride + tile * 8 + lane / 4] = score;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    split_softmax(own, item, tiles.base, (columns + 1) / 2 * 2, simdgroup_index, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float values[kColumns][kLaneValues];
    UNROLL
    for (int c = 0; c < kColumns; ++c) {
      UNROLL
      for (int e = 0; e < kLaneValues; ++e) values[c][e] = 0;
    }
    for (int k = tiles.begin; first_value < kValueDim && k < tiles.end; ++k) {
      const int position = tiles.base + k * 8;
      const int stride = params.pages.v_first == 0 ? kKeyDim : kValueDim;  // values in keys: K's
      const device uchar* rows =
          page_head(item, position) + params.pages.v_first +
          (position % kBlockTokens * stride + first_value) * number_bytes<T>();
      float numbers[8][kLaneValues];
      UNROLL
      for (int i = 0; i < 8; ++i) {
        UNROLL
        for (int e = 0; e < kLaneValues; ++e) numbers[i][e] = 0;
        if (position + i > seen.last) continue;
        if (kInt8) {
          Numbers<char, kLaneValues>::load(numbers[i], (const device char*)rows + i * stride);
        } else {
          Numbers<T, kLaneValues>::load(numbers[i], (const device T*)rows + i * stride);
        }
      }
      UNROLL
      for (int c = 0; c < kColumns; ++c) {
        if (c >= columns) continue;
        const threadgroup vec<T, 4>* fours =
            (const threadgroup vec<T, 4>*)(weights_of(own, c) + k * 8);
        const float4 weights[2] = {four_of<T>(fours[0]), four_of<T>(fours[1])};
        UNROLL
        for (int i = 0; i < 8; ++i) {
          UNROLL
          for (int e = 0; e < kLaneValues; ++e)
            values[c][e] = fma(weights[i / 4][i % 4], numbers[i][e], values[c][e]);
        }
      }
    }
    UNROLL
    for (int c = 0; c < kColumns; ++c) {
      if (c >= columns) continue;
      const FoldFactors factors = factors_of(own, c);
      UNROLL
      for (int e = 0; e < kLaneValues; ++e) state[c][e] = fold(state[c][e], values[c][e], factors);
    }
    // The next split overwrites the weights.
    if (split + 1 < item.grid->split_end) threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  const bool is_partial = item.grid->partial >= 0;
  UNROLL
  for (int c = 0; c < kColumns; ++c) {
    if (c >= columns) continue;
    device float* partial = partials + partial_of(item, c, kValueDim);
    if (is_partial && thread_index == 0) {
      partial[kValueDim] = column_state[c * kStateFloats];
      partial[kValueDim + 1] = column_state[c * kStateFloats + 1];
    }
    if (first_value >= kValueDim) continue;
    float factor = 1;
    if (!is_partial) {
      factor = finish(column_state[c * kStateFloats], column_state[c * kStateFloats + 1],
                      kHasSinks ? sinks[head_of(item, c)] : 0);
    }
    device T* target = out + row_of(item, c) * kValueDim;
    UNROLL
    for (int e = 0; e < kLaneValues; ++e) {
      if (is_partial) {
        partial[first_value + e] = state[c][e];
      } else {
        target[first_value + e] = T(state[c][e] * factor);
      }
    }
  }
}
