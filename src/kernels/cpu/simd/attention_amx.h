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
#include "kernels/cpu/simd/page_prefetch.h"
#include "kernels/cpu/simd/tile_ops.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_ISA {

inline constexpr int64_t kStepKeys = 32;
inline constexpr int64_t kSteps = kSplitTokens / kStepKeys;
inline constexpr int64_t kTileKeys = 16;
inline constexpr int64_t kKeyTiles = kSplitTokens / kTileKeys;
inline constexpr int64_t kTileBytes = 1024;
inline constexpr int64_t kTileRowBytes = 64;

// Where tiles stand: in the pages as they are, or in scratch one after the other. Bytes from row to
// row, and from one tile of a key's numbers to the next.
struct TileSource {
  const std::byte* data;
  int64_t row;
  int64_t next;
};

struct AmxScratch {
  AttentionResult total;
  AttentionResult part;  // of two column tiles
  std::byte* q;          // [column tile][k_pad / 32] tiles [16 pairs of dims][16 columns][2]
  std::byte* k;          // [kKeyTiles][k_pad / 32] tiles [16 keys][32 dims]
  std::byte* v;          // [v_pad / 16][kSteps] tiles [16 pairs of keys][16 dims][2]
  float* k_scales;       // [kSplitTokens], int8 only
  float* v_scales;       // [kSplitTokens]
  float* scores;         // [2 column tiles][kSplitTokens][16]
  std::byte* weights;    // [2 column tiles][kSteps] tiles [16 columns][32 keys]
  int64_t k_pad;         // k_dim to 32
  TileSource k_tiles[kKeyTiles];
  TileSource v_tiles[kSteps];  // or no data: gathered when it is needed
  KeyRange keys;               // of the present split
  int64_t base;                // its first position
  PagePrefetch ahead;
};

OCTAVO_INLINE int64_t amx_q_bytes(const AttentionShape& s, int64_t k_pad) {
  return s.padded_columns * k_pad * 2;
}

// Of two column tiles, where partials are folded at once.
OCTAVO_INLINE int64_t pair_floats(const AttentionShape& s) { return 2 * kLanes * (2 + s.v_pad); }

static int64_t amx_attention_scratch(const AttentionItem& item) {
  const AttentionShape s = attention_shape(item);
  const int64_t k_pad = round_up(item.job->layout.k_dim, 32);
  return (result_floats(s) + pair_floats(s)) * 4 + amx_q_bytes(s, k_pad) +
         kSplitTokens * (k_pad + s.v_pad) * 2 + kSplitTokens * 2 * 4 +
         2 * kSplitTokens * kLanes * 4 + 2 * kSteps * kTileBytes;
}

OCTAVO_INLINE void place_amx_scratch(const AttentionItem& item, const AttentionShape& s,
                                     std::byte* memory, AmxScratch& x) {
  x.k_pad = round_up(item.job->layout.k_dim, 32);
  auto* floats = reinterpret_cast<float*>(memory);
  x.total = result_at(floats, s);
  floats += result_floats(s);
  x.part = {floats, floats + 2 * kLanes, floats + 4 * kLanes};
  x.q = memory + (result_floats(s) + pair_floats(s)) * 4;
  x.k = x.q + amx_q_bytes(s, x.k_pad);
  x.v = x.k + kSplitTokens * x.k_pad * 2;
  x.k_scales = reinterpret_cast<float*>(x.v + kSplitTokens * s.v_pad * 2);
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

// 32 numbers of a row from `d` on as bfloat16, zeros past its end. It holds int8 exactly.
OCTAVO_INLINE __m512i load_numbers(const std::byte* row, bool int8, int64_t d, int64_t dim) {
  const __mmask32 mask = first_of_32(dim - d);
  if (!int8) return _mm512_maskz_loadu_epi16(mask, row + 2 * d);
  const __m256i bytes = _mm256_maskz_loadu_epi8(mask, row + d);
  const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(bytes)));
  const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(bytes, 1)));
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Positions of eight stand in one page, whatever its size. Those outside `keys` may have none.
inline constexpr int64_t kRun = 8;
OCTAVO_INLINE PageSlot run_slot(const AttentionItem& item, KeyRange keys, int64_t first) {
  if (first + kRun <= keys.from || first >= keys.to) return {nullptr, 0};
  return slot_of(item, first);
}

// Keys [first, first + 8) as rows of tiles; those outside `keys` become zero and are not read.
static void gather_k(const AttentionItem& item, const AmxScratch& x, KeyRange keys, int64_t first,
                     std::byte* to) {
  const PageLayout& l = item.job->layout;
  const PageSlot at = run_slot(item, keys, first);
  for (int64_t i = 0; i < kRun; ++i, to += kTileRowBytes) {
    std::byte* tile = to;
    if (first + i < keys.from || first + i >= keys.to) {
      for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes)
        _mm512_store_si512(tile, _mm512_setzero_si512());
      continue;
    }
    const std::byte* row = at.head + (at.slot + i) * l.k_row_bytes;
    if (!l.int8 && l.k_dim == x.k_pad) {
      for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes)
        _mm512_store_si512(tile, _mm512_loadu_si512(row + 2 * d));
      continue;
    }
    for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes)
      _mm512_store_si512(tile, load_numbers(row, l.int8, d, l.k_dim));
  }
}

// Sixteen numbers of one token's V as the low halves of 32 bits.
OCTAVO_INLINE __m512i load_v(const PageLayout& l, PageSlot at, int64_t d) {
  const std::byte* v = at.head + l.v_first;
  if (!l.paired_values) {
    const __m512i row = load_numbers(v + at.slot * l.v_row_bytes, l.int8, d, l.v_dim);
    return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(row));
  }
  // Every second number of the pair's row is this token's.
  const auto mask = static_cast<__mmask16>(first_of_32(l.v_dim - d));
  const __m512i both =
      _mm512_maskz_loadu_epi32(mask, v + at.slot / 2 * (2 * l.v_row_bytes) + d * 4);
  if (at.slot % 2 != 0) return _mm512_srli_epi32(both, 16);
  return _mm512_and_si512(both, _mm512_set1_epi32(0xffff));
}

// Numbers [d_begin, d_end) of V of positions [first, first + 8) as rows of pairs.
static void gather_v_run(const AttentionItem& item, KeyRange keys, int64_t first, int64_t d_begin,
                         int64_t d_end, std::byte* to, int64_t row, int64_t next) {
  const PageLayout& l = item.job->layout;
  const PageSlot at = run_slot(item, keys, first);
  const bool whole = first >= keys.from && first + kRun <= keys.to;
  for (int64_t i = 0; i < kRun; i += 2, to += row) {
    std::byte* tile = to;
    if (whole && l.paired_values && d_end <= l.v_dim) {
      const std::byte* pair = at.head + l.v_first + (at.slot + i) * l.v_row_bytes;
      for (int64_t d = d_begin; d < d_end; d += kLanes, tile += next)
        _mm512_store_si512(tile, _mm512_loadu_si512(pair + d * 4));
      continue;
    }
    auto seen = [&](int64_t p) { return p >= keys.from && p < keys.to; };
    for (int64_t d = d_begin; d < d_end; d += kLanes, tile += next) {
      __m512i even = _mm512_setzero_si512();
      __m512i odd = even;
      if (seen(first + i)) even = load_v(l, {at.head, at.slot + i}, d);
      if (seen(first + i + 1)) odd = load_v(l, {at.head, at.slot + i + 1}, d);
      _mm512_store_si512(tile, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
    }
  }
}

// The same of a whole step.
OCTAVO_INLINE TileSource gather_v(const AttentionItem& item, const AmxScratch& x, int64_t step,
                                  int64_t d_begin, int64_t d_end, std::byte* to, int64_t row,
                                  int64_t next) {
  const int64_t first = x.base + step * kStepKeys;
  for (int64_t j = 0; j < kStepKeys; j += kRun)
    gather_v_run(item, x.keys, first + j, d_begin, d_end, to + j / 2 * row, row, next);
  return {to, row, next};
}

// Whether [first, first + count) lies in `keys` and in one page.
OCTAVO_INLINE bool in_one_page(const PageLayout& l, KeyRange keys, int64_t first, int64_t count) {
  return first >= keys.from && first + count <= keys.to &&
         static_cast<uint32_t>(first) % static_cast<uint32_t>(l.block_tokens) + count <=
             l.block_tokens;
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

// Finds or gathers the tiles of a split's K and V, for the steps that `keys` touch. Many columns
// are worth a copy, which the second and later ones read in order.
static void find_tiles(const AttentionItem& item, const AttentionShape& s, AmxScratch& x) {
  const PageLayout& l = item.job->layout;
  const KeyRange keys = x.keys;
  const int64_t base = x.base;
  const bool few = s.columns <= 2 * kLanes;
  const bool k_ready = few && !l.int8 && l.k_dim == x.k_pad;
  const bool v_ready = few && l.paired_values && l.v_dim == s.v_pad;
  const int64_t step_end = (keys.to - base + kStepKeys - 1) / kStepKeys;
  for (int64_t step = (keys.from - base) / kStepKeys; step < step_end; ++step) {
    const int64_t first = base + step * kStepKeys;
    for (int64_t tile = 2 * step; tile < 2 * step + 2; ++tile) {
      const int64_t key = base + tile * kTileKeys;
      if (k_ready && in_one_page(l, keys, key, kTileKeys)) {
        const PageSlot at = slot_of(item, key);
        x.k_tiles[tile] = {at.head + at.slot * l.k_row_bytes, l.k_row_bytes, kTileRowBytes};
      } else {
        std::byte* to = x.k + tile * kTileKeys * x.k_pad * 2;
        gather_k(item, x, keys, key, to);
        gather_k(item, x, keys, key + kRun, to + kRun * kTileRowBytes);
        x.k_tiles[tile] = {to, kTileRowBytes, kTileBytes};
      }
    }
    if (v_ready && in_one_page(l, keys, first, kStepKeys)) {
      const PageSlot at = slot_of(item, first);
      x.v_tiles[step] = {at.head + l.v_first + at.slot * l.v_row_bytes, 2 * l.v_row_bytes,
                         kTileRowBytes};
    } else {
      // A copy that is read once is best made where it is read.
      x.v_tiles[step] = few ? TileSource{nullptr, 0, 0}
                            : gather_v(item, x, step, 0, s.v_pad, x.v + step * kTileBytes,
                                       kTileRowBytes, kSteps * kTileBytes);
    }
  }
  if (l.int8) gather_scales(item, x, keys, base);
}

// Steps [from, to) of a split, in which some column of a chunk sees something.
struct StepRange {
  int64_t from;
  int64_t to;
};

// 2^x for x <= 0 to 3e-6, far below the rounding of the weights to bfloat16.
OCTAVO_INLINE __m512 exp2_weight(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-126));
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // x - floor(x)
  __m512 p = _mm512_set1_ps(1.34266866e-2f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.22424690e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.41280213e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93044841e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
  return _mm512_scalef_ps(p, x);  // times 2^floor(x)
}

// The columns of one tile: what each may see, and how its scores become weights.
struct ColumnTile {
  __m512i first;  // rows of the split, by column
  __m512i last;
  int64_t all_from;  // rows that every column sees: [all_from, all_to)
  int64_t all_to;
  __m512 scale;       // from stored scores to log2 units
  __m512 highest[4];  // stored scores so far, by row modulo 4
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
  for (auto& highest : t.highest) highest = _mm512_set1_ps(kNothing);
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

// Goes over the 32 new score rows of a step while they are near: keeps the highest of each column
// in t.highest, rewrites scores that need more than the scale, and makes those a column does not
// see kNothing.
OCTAVO_INLINE void take_scores(const AttentionJob& job, const AmxScratch& x, float* scores,
                               int64_t step, ColumnTile& t) {
  const int64_t begin = step * kStepKeys;
  const bool plain = !job.layout.int8 && job.soft_cap <= 0;
  const float* row = scores + begin * kLanes;
  if (plain && begin >= t.all_from && begin + kStepKeys <= t.all_to) {
    for (int64_t j = 0; j < kStepKeys; j += 4) {
      for (int i = 0; i < 4; ++i)
        t.highest[i] = _mm512_max_ps(_mm512_load_ps(row + (j + i) * kLanes), t.highest[i]);
    }
    return;
  }
  for (int64_t j = begin; j < begin + kStepKeys; ++j) {
    __m512 score = finish_score(job, x, _mm512_load_ps(scores + j * kLanes), j);
    score = _mm512_mask_mov_ps(_mm512_set1_ps(kNothing), sees(t, j), score);
    _mm512_store_ps(scores + j * kLanes, score);
    t.highest[0] = _mm512_max_ps(score, t.highest[0]);
  }
}

// In log2 units.
OCTAVO_INLINE __m512 highest_score(const ColumnTile& t) {
  const __m512 all = _mm512_max_ps(_mm512_max_ps(t.highest[0], t.highest[1]),
                                   _mm512_max_ps(t.highest[2], t.highest[3]));
  const __mmask16 seen = _mm512_cmp_ps_mask(all, _mm512_set1_ps(kNothing / 2), _CMP_GT_OQ);
  return _mm512_mask_mul_ps(_mm512_set1_ps(kNothing), seen, all, t.scale);
}

// scores = K q^T for kBlocks column tiles. A step's rows are gone over while the tile unit works on
// the next.
template <int kBlocks>
static void score_steps(const AttentionJob& job, AmxScratch& x, const std::byte* q, StepRange steps,
                        ColumnTile* tiles) {
  auto take = [&](int64_t step) {
    for (int block = 0; block < kBlocks; ++block)
      take_scores(job, x, x.scores + block * kSplitTokens * kLanes, step, tiles[block]);
  };
  const int64_t depth = x.k_pad / 32;
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource a = x.k_tiles[2 * step];
    const TileSource b = x.k_tiles[2 * step + 1];
    tile_zero<0>();
    tile_zero<1>();
    if constexpr (kBlocks == 2) {
      tile_zero<2>();
      tile_zero<3>();
    }
    prefetch_share(x.ahead);
    for (int64_t d = 0; d < depth; ++d) {
      tile_load<6>(q + d * kTileBytes, kTileRowBytes);
      tile_stream<4>(a.data + d * a.next, a.row);
      tile_dot<0, 4, 6>();
      tile_stream<5>(b.data + d * b.next, b.row);
      tile_dot<1, 5, 6>();
      if constexpr (kBlocks == 2) {
        tile_load<7>(q + (depth + d) * kTileBytes, kTileRowBytes);
        tile_dot<2, 4, 7>();
        tile_dot<3, 5, 7>();
      }
    }
    if (step > steps.from) take(step - 1);
    float* to = x.scores + step * kStepKeys * kLanes;
    tile_store<0>(to, kTileRowBytes);
    tile_store<1>(to + kTileKeys * kLanes, kTileRowBytes);
    if constexpr (kBlocks == 2) {
      to += kSplitTokens * kLanes;
      tile_store<2>(to, kTileRowBytes);
      tile_store<3>(to + kTileKeys * kLanes, kTileRowBytes);
    }
  }
  take(steps.to - 1);
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

// Scores of a column tile to weights, and their max and sum.
static void weigh(const AttentionJob& job, AmxScratch& x, const ColumnTile& t, int block,
                  StepRange steps) {
  float* scores = x.scores + block * kSplitTokens * kLanes;
  std::byte* tiles = x.weights + block * kSteps * kTileBytes;
  const __m512 highest = highest_score(t);
  __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                    _mm512_setzero_ps()};
  for (int64_t step = steps.from; step < steps.to; ++step) {
    prefetch_share(x.ahead);
    const int64_t row = step * kStepKeys;
    const float* from = scores + row * kLanes;
    const float* v_scales = job.layout.int8 ? x.v_scales + row : nullptr;
    if (row >= t.all_from && row + kStepKeys <= t.all_to) {
      weigh_step<false>(t, from, v_scales, highest, sums, tiles + step * kTileBytes);
    } else {
      weigh_step<true>(t, from, v_scales, highest, sums, tiles + step * kTileBytes);
    }
  }
  _mm512_store_ps(x.part.max + block * kLanes, highest);
  _mm512_store_ps(x.part.sum + block * kLanes,
                  _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

// The V tiles of one step and `width` sixteens of the head from `dim` on. Copies take turns in four
// places, so that no tile is loaded while it is on its way to memory.
OCTAVO_INLINE TileSource v_source(const AttentionItem& item, const AmxScratch& x, int64_t step,
                                  int64_t dim, int64_t width) {
  const TileSource t = x.v_tiles[step];
  if (t.data != nullptr) return {t.data + dim / kLanes * t.next, t.row, t.next};
  const int64_t row = width * kTileRowBytes;
  return gather_v(item, x, step, dim, dim + width * kLanes, x.v + step % 4 * kTileKeys * row, row,
                  kTileRowBytes);
}

// values = weights V, for one column tile and kWidth sixteens of the head from `dim` on.
template <int kWidth>
static void sum_values(const AttentionItem& item, const AttentionShape& s, AmxScratch& x,
                       int64_t dim, StepRange steps) {
  tile_zero<0>();
  if constexpr (kWidth > 1) tile_zero<1>();
  if constexpr (kWidth > 2) tile_zero<2>();
  if constexpr (kWidth > 2) tile_zero<3>();
  TileSource next = v_source(item, x, steps.from, dim, kWidth);
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource v = next;
    if (step + 1 < steps.to) next = v_source(item, x, step + 1, dim, kWidth);
    prefetch_share(x.ahead);
    tile_load<4>(x.weights + step * kTileBytes, kTileRowBytes);
    tile_stream<5>(v.data, v.row);
    tile_dot<0, 4, 5>();
    if constexpr (kWidth > 1) {
      tile_stream<6>(v.data + v.next, v.row);
      tile_dot<1, 4, 6>();
    }
    if constexpr (kWidth > 2) {
      tile_stream<7>(v.data + 2 * v.next, v.row);
      tile_dot<2, 4, 7>();
      tile_stream<5>(v.data + 3 * v.next, v.row);
      tile_dot<3, 4, 5>();
    }
  }
  float* to = x.part.values + dim;
  tile_store<0>(to, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<1>(to + kLanes, s.v_pad * 4);
  if constexpr (kWidth > 2) tile_store<2>(to + 2 * kLanes, s.v_pad * 4);
  if constexpr (kWidth > 2) tile_store<3>(to + 3 * kLanes, s.v_pad * 4);
}

// The same for two column tiles, which share the loads of V.
template <int kWidth>
static void sum_values_of_two(const AttentionItem& item, const AttentionShape& s, AmxScratch& x,
                              int64_t dim, StepRange steps) {
  tile_zero<0>();
  tile_zero<1>();
  if constexpr (kWidth > 1) tile_zero<2>();
  if constexpr (kWidth > 1) tile_zero<3>();
  TileSource next = v_source(item, x, steps.from, dim, kWidth);
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource v = next;
    if (step + 1 < steps.to) next = v_source(item, x, step + 1, dim, kWidth);
    tile_load<4>(x.weights + step * kTileBytes, kTileRowBytes);
    tile_stream<6>(v.data, v.row);
    tile_dot<0, 4, 6>();
    tile_load<5>(x.weights + (kSteps + step) * kTileBytes, kTileRowBytes);
    tile_dot<1, 5, 6>();
    if constexpr (kWidth > 1) {
      tile_stream<7>(v.data + v.next, v.row);
      tile_dot<2, 4, 7>();
      tile_dot<3, 5, 7>();
    }
  }
  float* to = x.part.values + dim;
  float* second = to + kLanes * s.v_pad;
  tile_store<0>(to, s.v_pad * 4);
  tile_store<1>(second, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<2>(to + kLanes, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<3>(second + kLanes, s.v_pad * 4);
}

// The partial of one or two column tiles from `column` on.
template <int kBlocks>
static void attend_tiles(const AttentionItem& item, const AttentionShape& s, AmxScratch& x,
                         int64_t column, StepRange steps) {
  ColumnTile tiles[kBlocks];
  for (int block = 0; block < kBlocks; ++block)
    tiles[block] = column_tile(item, s, x.base, column + block * kLanes);
  score_steps<kBlocks>(*item.job, x, x.q + column * x.k_pad * 2, steps, tiles);
  for (int block = 0; block < kBlocks; ++block) weigh(*item.job, x, tiles[block], block, steps);
  constexpr int64_t kWidth = kBlocks == 2 ? 2 : 4;
  int64_t dim = 0;
  for (; dim + kWidth * kLanes <= s.v_pad; dim += kWidth * kLanes) {
    if constexpr (kBlocks == 2) {
      sum_values_of_two<2>(item, s, x, dim, steps);
    } else {
      sum_values<4>(item, s, x, dim, steps);
    }
  }
  for (; dim < s.v_pad; dim += kLanes) {
    if constexpr (kBlocks == 2) {
      sum_values_of_two<1>(item, s, x, dim, steps);
    } else {
      sum_values<1>(item, s, x, dim, steps);
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
    x.base = split * kSplitTokens;
    x.keys = keys_of(item, s, split, 0, s.columns);
    x.ahead = prefetch_after(item, split, 4 * kSteps);
    find_tiles(item, s, x);
    for (int64_t c = 0; c < s.columns; c += 2 * kLanes) {
      const int64_t end = c + 2 * kLanes < s.columns ? c + 2 * kLanes : s.columns;
      const KeyRange keys = keys_of(item, s, split, c, end);
      if (!fold) {
        float* partial = item.partials + (split - item.split_begin) * result_floats(s);
        x.part = result_from(result_at(partial, s), s, c);
      }
      if (keys.from >= keys.to) {
        if (!fold) clear_result(x.part, s, 0, end - c);
        continue;
      }
      const StepRange steps = {(keys.from - x.base) / kStepKeys,
                               (keys.to - x.base + kStepKeys - 1) / kStepKeys};
      if (end - c > kLanes) {
        attend_tiles<2>(item, s, x, c, steps);
      } else {
        attend_tiles<1>(item, s, x, c, steps);
      }
      if (fold) fold_result(result_from(x.total, s, c), x.part, s, 0, end - c);
    }
  }
  if (fold) write_out(item, x.total, s);
}

}  // namespace octavo::cpu::OCTAVO_ISA

#endif
