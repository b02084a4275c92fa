// attention_amx.h - paged attention of bfloat16 queries on the tile unit. No MLX.
//
// Scores are computed as keys x columns, so that sixteen columns run in the lanes of the softmax;
// the weights are turned round on their way into the second product, columns x keys times keys x
// values. A column's bits do not depend on the columns beside it. Keys are taken 32 at a time (a
// step) at absolute positions; a step that a column does not see adds zeros to it.
#pragma once

#ifdef OCTAVO_ISA_AMX

#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/attention_fold.h"
#include "kernels/cpu/simd/tile_ops.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_ISA {

inline constexpr int64_t kStepKeys = 32;
inline constexpr int64_t kSteps = kSplitTokens / kStepKeys;
inline constexpr int64_t kTileKeys = 16;
inline constexpr int64_t kKeyTiles = kSplitTokens / kTileKeys;
inline constexpr int64_t kTileBytes = 1024;
inline constexpr int64_t kTileRowBytes = 64;

// Where a tile's rows stand: in the pages as they are, or in scratch.
struct TileSource {
  const void* data;
  int64_t stride;
};

struct AmxScratch {
  AttentionResult total;
  AttentionResult part;
  std::byte* q;        // [column tile][k_pad / 32] tiles [16 pairs of dims][16 columns][2]
  uint16_t* k;         // [kSplitTokens][k_pad]
  uint16_t* v;         // [kSplitTokens / 2][v_pad][2]
  float* k_scales;     // [kSplitTokens], int8 only
  float* v_scales;     // [kSplitTokens]
  float* scores;       // [2 column tiles][kSplitTokens][16]
  std::byte* weights;  // [2 column tiles][kSteps] tiles [16 columns][32 keys]
  int64_t k_pad;       // k_dim to 32
  TileSource k_tiles[kKeyTiles];
  TileSource v_tiles[kSteps];  // the first sixteen dims; others follow in the row
};

OCTAVO_INLINE int64_t amx_q_bytes(const AttentionShape& s, int64_t k_pad) {
  return s.padded_columns * k_pad * 2;
}

static int64_t amx_attention_scratch(const AttentionItem& item) {
  const AttentionShape s = attention_shape(item);
  const int64_t k_pad = round_up(item.job->layout.k_dim, 32);
  return 2 * result_floats(s) * 4 + amx_q_bytes(s, k_pad) + kSplitTokens * (k_pad + s.v_pad) * 2 +
         kSplitTokens * 2 * 4 + 2 * kSplitTokens * kLanes * 4 + 2 * kSteps * kTileBytes;
}

OCTAVO_INLINE void place_amx_scratch(const AttentionItem& item, const AttentionShape& s,
                                     std::byte* memory, AmxScratch& x) {
  x.k_pad = round_up(item.job->layout.k_dim, 32);
  const int64_t result_bytes = result_floats(s) * 4;
  x.total = result_at(reinterpret_cast<float*>(memory), s);
  x.part = result_at(reinterpret_cast<float*>(memory + result_bytes), s);
  x.q = memory + 2 * result_bytes;
  x.k = reinterpret_cast<uint16_t*>(x.q + amx_q_bytes(s, x.k_pad));
  x.v = x.k + kSplitTokens * x.k_pad;
  x.k_scales = reinterpret_cast<float*>(x.v + kSplitTokens * s.v_pad);
  x.v_scales = x.k_scales + kSplitTokens;
  x.scores = x.v_scales + kSplitTokens;
  x.weights = reinterpret_cast<std::byte*>(x.scores + 2 * kSplitTokens * kLanes);
}

OCTAVO_INLINE __mmask32 first_of_32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

static void pack_queries(const AttentionItem& item, const AttentionShape& s, const AmxScratch& x) {
  const AttentionJob& job = *item.job;
  const int64_t dim = job.layout.k_dim;
  const auto* q = static_cast<const uint16_t*>(job.q);
  std::byte* tile = x.q;
  for (int64_t first = 0; first < s.columns; first += kLanes) {
    for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes) {
      __m512 rows[16];
      for (int c = 0; c < 16; ++c) {
        const int64_t column = first + c;
        rows[c] = _mm512_setzero_ps();
        if (column >= s.columns) continue;
        const int64_t row = item.row_begin + column / s.group;
        const int64_t head = item.kv_head * s.group + column % s.group;
        rows[c] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(
            first_of_32(dim - d), q + (row * job.q_heads + head) * dim + d));
      }
      transpose16(rows);
      for (int i = 0; i < 16; ++i) _mm512_store_ps(tile + i * kTileRowBytes, rows[i]);
    }
  }
}

// Sixteen int8 as bfloat16, which holds them exactly.
OCTAVO_INLINE __m256i widen_to_bf16(__m128i bytes) {
  return reinterpret_cast<__m256i>(
      _mm512_cvtneps_pbh(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))));
}
OCTAVO_INLINE __m256i load_number_row(const std::byte* row, bool int8, int64_t d, int64_t dim) {
  const auto mask = static_cast<__mmask16>(first_of_32(dim - d));
  if (int8) return widen_to_bf16(_mm_maskz_loadu_epi8(mask, row + d));
  return _mm256_maskz_loadu_epi16(mask, row + 2 * d);
}

// Keys [first, first + 16) row by row; those outside `keys` become zero and are not read.
static void gather_k(const AttentionItem& item, const AmxScratch& x, KeyRange keys, int64_t first,
                     uint16_t* to) {
  const PageLayout& l = item.job->layout;
  for (int64_t p = first; p < first + kTileKeys; ++p, to += x.k_pad) {
    if (p < keys.from || p >= keys.to) {
      std::memset(to, 0, static_cast<size_t>(x.k_pad) * 2);
      continue;
    }
    const PageSlot at = slot_of(item, p);
    const std::byte* row = at.head + at.slot * l.k_row_bytes;
    for (int64_t d = 0; d < x.k_pad; d += 16) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + d),
                         load_number_row(row, l.int8, d, l.k_dim));
    }
  }
}

// A row of V, zero outside `keys`.
OCTAVO_INLINE __m256i load_v(const AttentionItem& item, KeyRange keys, int64_t p, int64_t d) {
  const PageLayout& l = item.job->layout;
  if (p < keys.from || p >= keys.to) return _mm256_setzero_si256();
  const PageSlot at = slot_of(item, p);
  if (!l.paired_values)
    return load_number_row(at.head + l.v_first + at.slot * l.v_row_bytes, l.int8, d, l.v_dim);
  // Numbers of this token are every second one of its pair's row.
  const auto mask = static_cast<__mmask16>(first_of_32(l.v_dim - d));
  const std::byte* pair = at.head + l.v_first + at.slot / 2 * (2 * l.v_row_bytes) + d * 4;
  const __m512i both = _mm512_maskz_loadu_epi32(mask, pair);
  return _mm512_cvtepi32_epi16(at.slot % 2 == 0 ? both : _mm512_srli_epi32(both, 16));
}

// Two rows interleaved as one row of pairs.
static void gather_v_pair(const AttentionItem& item, const AttentionShape& s, KeyRange keys,
                          int64_t first, uint16_t* to) {
  const PageLayout& l = item.job->layout;
  const bool whole = first >= keys.from && first + 2 <= keys.to;
  if (whole && l.paired_values && l.v_dim == s.v_pad) {
    const PageSlot at = slot_of(item, first);
    const std::byte* pair = at.head + l.v_first + at.slot / 2 * (2 * l.v_row_bytes);
    for (int64_t b = 0; b < 4 * s.v_pad; b += 64) {
      _mm512_store_si512(reinterpret_cast<std::byte*>(to) + b, _mm512_loadu_si512(pair + b));
    }
    return;
  }
  for (int64_t d = 0; d < s.v_pad; d += kLanes) {
    const __m512i even = _mm512_cvtepu16_epi32(load_v(item, keys, first, d));
    const __m512i odd = _mm512_cvtepu16_epi32(load_v(item, keys, first + 1, d));
    _mm512_store_si512(to + 2 * d, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
  }
}

// Whether [first, first + count) lies in `keys` and in one page.
OCTAVO_INLINE bool in_one_page(const PageLayout& l, KeyRange keys, int64_t first, int64_t count) {
  return first >= keys.from && first + count <= keys.to &&
         first % l.block_tokens + count <= l.block_tokens;
}

static void gather_scales(const AttentionItem& item, const AmxScratch& x, KeyRange keys,
                          int64_t base) {
  const PageLayout& l = item.job->layout;
  for (int64_t p = keys.from; p < keys.to; ++p) {
    const PageSlot at = slot_of(item, p);
    std::memcpy(x.k_scales + (p - base), at.head + l.k_scales + at.slot * 4, 4);
    std::memcpy(x.v_scales + (p - base), at.head + l.v_scales + at.slot * 4, 4);
  }
}

// Finds or gathers the tiles of a split's K and V, for the steps that `keys` touch.
static void find_tiles(const AttentionItem& item, const AttentionShape& s, AmxScratch& x,
                       KeyRange keys, int64_t base) {
  const PageLayout& l = item.job->layout;
  const bool k_ready = !l.int8 && l.k_dim == x.k_pad;
  const bool v_ready = l.paired_values && l.v_dim == s.v_pad;
  const int64_t step_end = (keys.to - base + kStepKeys - 1) / kStepKeys;
  for (int64_t step = (keys.from - base) / kStepKeys; step < step_end; ++step) {
    const int64_t first = base + step * kStepKeys;
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t tile = 2 * step + half;
      const int64_t key = first + half * kTileKeys;
      if (k_ready && in_one_page(l, keys, key, kTileKeys)) {
        const PageSlot at = slot_of(item, key);
        x.k_tiles[tile] = {at.head + at.slot * l.k_row_bytes, l.k_row_bytes};
      } else {
        uint16_t* to = x.k + tile * kTileKeys * x.k_pad;
        gather_k(item, x, keys, key, to);
        x.k_tiles[tile] = {to, x.k_pad * 2};
      }
    }
    if (v_ready && in_one_page(l, keys, first, kStepKeys)) {
      const PageSlot at = slot_of(item, first);
      x.v_tiles[step] = {at.head + l.v_first + at.slot * l.v_row_bytes, 2 * l.v_row_bytes};
    } else {
      uint16_t* to = x.v + step * kStepKeys * s.v_pad;
      for (int64_t j = 0; j < kStepKeys; j += 2)
        gather_v_pair(item, s, keys, first + j, to + j * s.v_pad);
      x.v_tiles[step] = {to, s.v_pad * 4};
    }
  }
  if (l.int8) gather_scales(item, x, keys, base);
}

// Steps [from, to) of a split, in which some column of a chunk sees something.
struct StepRange {
  int64_t from;
  int64_t to;
};

// scores = K q^T for kBlocks column tiles.
template <int kBlocks>
static void score_steps(const AmxScratch& x, const std::byte* q, StepRange steps) {
  const int64_t depth = x.k_pad / 32;
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource a = x.k_tiles[2 * step];
    const TileSource b = x.k_tiles[2 * step + 1];
    const auto* ka = static_cast<const std::byte*>(a.data);
    const auto* kb = static_cast<const std::byte*>(b.data);
    tile_zero<0>();
    tile_zero<1>();
    if constexpr (kBlocks == 2) {
      tile_zero<2>();
      tile_zero<3>();
    }
    for (int64_t d = 0; d < depth; ++d) {
      tile_load<6>(q + d * kTileBytes, kTileRowBytes);
      tile_load<4>(ka + d * kTileRowBytes, a.stride);
      tile_dot<0, 4, 6>();
      tile_load<5>(kb + d * kTileRowBytes, b.stride);
      tile_dot<1, 5, 6>();
      if constexpr (kBlocks == 2) {
        tile_load<7>(q + (depth + d) * kTileBytes, kTileRowBytes);
        tile_dot<2, 4, 7>();
        tile_dot<3, 5, 7>();
      }
    }
    float* to = x.scores + step * kStepKeys * kLanes;
    tile_store<0>(to, kTileRowBytes);
    tile_store<1>(to + kTileKeys * kLanes, kTileRowBytes);
    if constexpr (kBlocks == 2) {
      to += kSplitTokens * kLanes;
      tile_store<2>(to, kTileRowBytes);
      tile_store<3>(to + kTileKeys * kLanes, kTileRowBytes);
    }
  }
}

// 2^x for x <= 0 to 3e-6, far below the rounding of the weights to bfloat16.
OCTAVO_INLINE __m512 exp2_weight(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-126));
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(9.582851e-3f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.590643e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40241e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.9312418e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
  return _mm512_scalef_ps(p, n);
}

// The columns of one tile: what each may see, and how its scores become weights.
struct ColumnTile {
  __m512i first;  // rows of the split, by column
  __m512i last;
  int64_t all_from;  // rows that every column sees: [all_from, all_to)
  int64_t all_to;
  __m512 scale;  // from stored scores to log2 units
};

OCTAVO_INLINE ColumnTile column_tile(const AttentionItem& item, const AttentionShape& s,
                                     int64_t base, int64_t begin) {
  alignas(64) int32_t first[kLanes];
  alignas(64) int32_t last[kLanes];
  ColumnTile t;
  t.all_from = 0;
  t.all_to = kSplitTokens;
  for (int64_t i = 0; i < kLanes; ++i) {
    const int64_t c = begin + i < s.columns ? begin + i : s.columns - 1;
    const KeyRange seen = keys_of(item, s, base / kSplitTokens, c, c + 1);
    first[i] = static_cast<int32_t>(seen.from - base);
    last[i] = static_cast<int32_t>((seen.to < base ? base : seen.to) - base - 1);
    if (first[i] > t.all_from) t.all_from = first[i];
    if (last[i] + 1 < t.all_to) t.all_to = last[i] + 1;
  }
  t.first = _mm512_load_si512(first);
  t.last = _mm512_load_si512(last);
  const AttentionJob& job = *item.job;
  t.scale = _mm512_set1_ps(job.soft_cap > 0 ? 1 : job.scale * kLog2E);
  return t;
}

OCTAVO_INLINE __mmask16 sees(const ColumnTile& t, int64_t row) {
  const __m512i key = _mm512_set1_epi32(static_cast<int>(row));
  return _mm512_mask_cmple_epi32_mask(_mm512_cmple_epi32_mask(t.first, key), key, t.last);
}

// Brings one score row to its final form but for the scale.
OCTAVO_INLINE __m512 finish_score(const AttentionJob& job, const AmxScratch& x, __m512 score,
                                  int64_t row) {
  if (job.layout.int8) score = _mm512_mul_ps(score, _mm512_set1_ps(x.k_scales[row]));
  if (job.soft_cap > 0) {
    Vec v;
    v.r[0] = _mm512_mul_ps(score, _mm512_set1_ps(job.scale / job.soft_cap));
    score = _mm512_mul_ps(_mm512_set1_ps(job.soft_cap * kLog2E), tanh(v).r[0]);
  }
  return score;
}

// The highest score of each column, in log2 units. Scores that need more than the scale are
// rewritten, and those a column does not see become kNothing.
static __m512 highest_scores(const AttentionJob& job, const AmxScratch& x, const ColumnTile& t,
                             float* scores, StepRange steps) {
  const bool plain = !job.layout.int8 && job.soft_cap <= 0;
  const __m512 nothing = _mm512_set1_ps(kNothing);
  __m512 highest[4] = {nothing, nothing, nothing, nothing};
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const int64_t begin = step * kStepKeys;
    const bool whole = begin >= t.all_from && begin + kStepKeys <= t.all_to;
    if (plain && whole) {
      for (int64_t j = begin; j < begin + kStepKeys; j += 4) {
        for (int i = 0; i < 4; ++i)
          highest[i] = _mm512_max_ps(_mm512_load_ps(scores + (j + i) * kLanes), highest[i]);
      }
      continue;
    }
    for (int64_t j = begin; j < begin + kStepKeys; ++j) {
      __m512 score = finish_score(job, x, _mm512_load_ps(scores + j * kLanes), j);
      score = _mm512_mask_mov_ps(nothing, sees(t, j), score);
      _mm512_store_ps(scores + j * kLanes, score);
      highest[0] = _mm512_max_ps(score, highest[0]);
    }
  }
  const __m512 all =
      _mm512_max_ps(_mm512_max_ps(highest[0], highest[1]), _mm512_max_ps(highest[2], highest[3]));
  const __mmask16 seen = _mm512_cmp_ps_mask(all, _mm512_set1_ps(kNothing / 2), _CMP_GT_OQ);
  return _mm512_mask_mul_ps(nothing, seen, all, t.scale);
}

// One row of weights. kMasked: some column may not see the row.
template <bool kMasked>
OCTAVO_INLINE __m512 weight_row(const ColumnTile& t, const float* scores, __m512 highest) {
  const __m512 score = _mm512_load_ps(scores);
  const __m512 weight = exp2_weight(_mm512_fmsub_ps(score, t.scale, highest));
  if (!kMasked) return weight;
  const __mmask16 seen = _mm512_cmp_ps_mask(score, _mm512_set1_ps(kNothing / 2), _CMP_GT_OQ);
  return _mm512_maskz_mov_ps(seen, weight);
}

// 32 rows of weights, turned into a tile of 16 columns x 32 keys. v_scales: int8 only, or null.
template <bool kMasked>
OCTAVO_INLINE void weigh_step(const ColumnTile& t, const float* scores, const float* v_scales,
                              __m512 highest, __m512 sums[4], std::byte* tile) {
  const __m512i interleave =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  __m512 pairs[16];
  _Pragma("GCC unroll 16") for (int i = 0; i < 16; ++i) {
    const int j = 2 * i;
    __m512 even = weight_row<kMasked>(t, scores + j * kLanes, highest);
    __m512 odd = weight_row<kMasked>(t, scores + (j + 1) * kLanes, highest);
    sums[j % 4] = _mm512_add_ps(sums[j % 4], even);
    sums[j % 4 + 1] = _mm512_add_ps(sums[j % 4 + 1], odd);
    if (v_scales != nullptr) {
      even = _mm512_mul_ps(even, _mm512_set1_ps(v_scales[j]));
      odd = _mm512_mul_ps(odd, _mm512_set1_ps(v_scales[j + 1]));
    }
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
    pairs[i] = _mm512_castsi512_ps(_mm512_permutexvar_epi16(interleave, both));
  }
  transpose16(pairs);
  for (int i = 0; i < 16; ++i) _mm512_store_ps(tile + i * kTileRowBytes, pairs[i]);
}

// Scores of the sixteen columns from `column` on to weights, and their max and sum.
static void weigh(const AttentionItem& item, const AttentionShape& s, const AmxScratch& x,
                  int64_t base, int64_t column, int block, StepRange steps) {
  const AttentionJob& job = *item.job;
  const ColumnTile t = column_tile(item, s, base, column);
  float* scores = x.scores + block * kSplitTokens * kLanes;
  std::byte* tiles = x.weights + block * kSteps * kTileBytes;
  const __m512 highest = highest_scores(job, x, t, scores, steps);
  __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                    _mm512_setzero_ps()};
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const int64_t row = step * kStepKeys;
    const float* from = scores + row * kLanes;
    const float* v_scales = job.layout.int8 ? x.v_scales + row : nullptr;
    if (row >= t.all_from && row + kStepKeys <= t.all_to) {
      weigh_step<false>(t, from, v_scales, highest, sums, tiles + step * kTileBytes);
    } else {
      weigh_step<true>(t, from, v_scales, highest, sums, tiles + step * kTileBytes);
    }
  }
  _mm512_store_ps(x.part.max + column, highest);
  _mm512_store_ps(x.part.sum + column,
                  _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

// values = weights V, for one column tile and kWidth sixteens of the head from `dim` on.
template <int kWidth>
static void sum_values(const AttentionShape& s, const AmxScratch& x, int64_t column, int64_t dim,
                       StepRange steps) {
  tile_zero<0>();
  if constexpr (kWidth > 1) tile_zero<1>();
  if constexpr (kWidth > 2) tile_zero<2>();
  if constexpr (kWidth > 2) tile_zero<3>();
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource source = x.v_tiles[step];
    const auto* v = static_cast<const std::byte*>(source.data) + dim * 4;
    tile_load<4>(x.weights + step * kTileBytes, kTileRowBytes);
    tile_load<5>(v, source.stride);
    tile_dot<0, 4, 5>();
    if constexpr (kWidth > 1) {
      tile_load<6>(v + kTileRowBytes, source.stride);
      tile_dot<1, 4, 6>();
    }
    if constexpr (kWidth > 2) {
      tile_load<7>(v + 2 * kTileRowBytes, source.stride);
      tile_dot<2, 4, 7>();
      tile_load<5>(v + 3 * kTileRowBytes, source.stride);
      tile_dot<3, 4, 5>();
    }
  }
  float* to = x.part.values + column * s.v_pad + dim;
  tile_store<0>(to, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<1>(to + kLanes, s.v_pad * 4);
  if constexpr (kWidth > 2) tile_store<2>(to + 2 * kLanes, s.v_pad * 4);
  if constexpr (kWidth > 2) tile_store<3>(to + 3 * kLanes, s.v_pad * 4);
}

// The same for two column tiles, which share the loads of V.
template <int kWidth>
static void sum_values_of_two(const AttentionShape& s, const AmxScratch& x, int64_t column,
                              int64_t dim, StepRange steps) {
  tile_zero<0>();
  tile_zero<1>();
  if constexpr (kWidth > 1) tile_zero<2>();
  if constexpr (kWidth > 1) tile_zero<3>();
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource source = x.v_tiles[step];
    const auto* v = static_cast<const std::byte*>(source.data) + dim * 4;
    tile_load<4>(x.weights + step * kTileBytes, kTileRowBytes);
    tile_load<6>(v, source.stride);
    tile_dot<0, 4, 6>();
    tile_load<5>(x.weights + (kSteps + step) * kTileBytes, kTileRowBytes);
    tile_dot<1, 5, 6>();
    if constexpr (kWidth > 1) {
      tile_load<7>(v + kTileRowBytes, source.stride);
      tile_dot<2, 4, 7>();
      tile_dot<3, 5, 7>();
    }
  }
  float* to = x.part.values + column * s.v_pad + dim;
  float* second = to + kLanes * s.v_pad;
  tile_store<0>(to, s.v_pad * 4);
  tile_store<1>(second, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<2>(to + kLanes, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<3>(second + kLanes, s.v_pad * 4);
}

// The partial of one or two column tiles from `column` on.
template <int kBlocks>
static void attend_tiles(const AttentionItem& item, const AttentionShape& s, const AmxScratch& x,
                         int64_t base, int64_t column, StepRange steps) {
  score_steps<kBlocks>(x, x.q + column * x.k_pad * 2, steps);
  for (int block = 0; block < kBlocks; ++block)
    weigh(item, s, x, base, column + block * kLanes, block, steps);
  constexpr int64_t kWidth = kBlocks == 2 ? 2 : 4;
  int64_t dim = 0;
  for (; dim + kWidth * kLanes <= s.v_pad; dim += kWidth * kLanes) {
    if constexpr (kBlocks == 2) {
      sum_values_of_two<2>(s, x, column, dim, steps);
    } else {
      sum_values<4>(s, x, column, dim, steps);
    }
  }
  for (; dim < s.v_pad; dim += kLanes) {
    if constexpr (kBlocks == 2) {
      sum_values_of_two<1>(s, x, column, dim, steps);
    } else {
      sum_values<1>(s, x, column, dim, steps);
    }
  }
}

static void amx_attend(const AttentionItem& item, std::byte* scratch) {
  const AttentionShape s = attention_shape(item);
  AmxScratch x;
  place_amx_scratch(item, s, scratch, x);
  pack_queries(item, s, x);
  const bool fold = item.partials == nullptr;
  if (fold) clear_result(x.total, s, 0, s.columns);
  for (int64_t split = item.split_begin; split < item.split_end; ++split) {
    const int64_t base = split * kSplitTokens;
    if (!fold) x.part = result_at(item.partials + (split - item.split_begin) * result_floats(s), s);
    find_tiles(item, s, x, keys_of(item, s, split, 0, s.columns), base);
    for (int64_t c = 0; c < s.padded_columns; c += 2 * kLanes) {
      const int64_t end = c + 2 * kLanes < s.columns ? c + 2 * kLanes : s.columns;
      const KeyRange keys = keys_of(item, s, split, c, end);
      if (keys.from >= keys.to) {
        if (!fold) clear_result(x.part, s, c, end);
        continue;
      }
      const StepRange steps = {(keys.from - base) / kStepKeys,
                               (keys.to - base + kStepKeys - 1) / kStepKeys};
      if (end - c > kLanes) {
        attend_tiles<2>(item, s, x, base, c, steps);
      } else {
        attend_tiles<1>(item, s, x, base, c, steps);
      }
      if (fold) fold_result(x.total, x.part, s, c, end);
    }
  }
  if (fold) write_out(item, x.total, s);
}

}  // namespace octavo::cpu::OCTAVO_ISA

#endif
