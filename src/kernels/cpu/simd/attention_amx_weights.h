// attention_amx_weights.h - scores of 32 keys at a time and their conversion to weights, for
// sixteen adjacent columns. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/attention_amx_tiles.h"
#include "kernels/cpu/simd/tile_ops.h"
#include "kernels/cpu/simd/weight_power.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The columns of one tile: which rows each sees, and how its scores become weights.
struct ColumnTile {
  __m512i first;  // rows of the split, by column
  __m512i last;
  int64_t all_from;  // rows that every column sees: [all_from, all_to)
  int64_t all_to;
  __m512 scale;       // from stored scores to log2 units
  __m512 highest[4];  // stored scores so far, by row modulo 4
};

OCTAVO_INLINE ColumnTile column_tile(const AttentionPiece& item, const AttentionShape& s,
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
  t.scale = _mm512_set1_ps(job.options.soft_cap > 0 ? 1 : job.options.scale * kLog2E);
  return t;
}

OCTAVO_INLINE __mmask16 sees(const ColumnTile& t, int64_t row) {
  const __m512i key = _mm512_set1_epi32(static_cast<int>(row));
  return _mm512_mask_cmple_epi32_mask(_mm512_cmple_epi32_mask(t.first, key), key, t.last);
}

// Brings one score row to its final form, except for the scale.
OCTAVO_INLINE __m512 finish_score(const AttentionJob& job, const AmxScratch& x, __m512 score,
                                  int64_t row) {
  if (job.layout.int8) score = _mm512_mul_ps(score, _mm512_set1_ps(x.k_scales[row]));
  if (job.options.soft_cap > 0) {
    Vec v;
    v.r[0] = _mm512_mul_ps(score, _mm512_set1_ps(job.options.scale / job.options.soft_cap));
    score = _mm512_mul_ps(_mm512_set1_ps(job.options.soft_cap * kLog2E), tanh(v).r[0]);
  }
  return score;
}

// Processes the 32 new score rows of a step while they are in the cache: updates each column's
// maximum in t.highest, rewrites scores that need more than the scale, and sets those that a column
// does not see to kNothing.
OCTAVO_INLINE void take_scores(const AttentionJob& job, const AmxScratch& x, float* scores,
                               int64_t step, ColumnTile& t) {
  const int64_t begin = step * kStepKeys;
  const bool plain = !job.layout.int8 && job.options.soft_cap <= 0;
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

// scores = K q^T for kBlocks column tiles. A step's rows are processed while the tile unit computes
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

// One row of weights: its share of the sums, and with the scale of int8 values. v_scale: or null.
struct WeightRow {
  __m512 share;
  __m512 scaled;
};

// kMasked: some column may not see the row. Its weight is zero whatever the row's score and scale.
template <bool kMasked>
OCTAVO_INLINE WeightRow weight_row(const ColumnTile& t, const float* score, const float* v_scale,
                                   int64_t row, __m512 highest) {
  __m512 weight = exp2_weight(_mm512_fmsub_ps(_mm512_load_ps(score), t.scale, highest));
  if constexpr (kMasked) {
    const __mmask16 seen = sees(t, row);
    weight = _mm512_maskz_mov_ps(seen, weight);
    if (v_scale == nullptr) return {weight, weight};
    return {weight, _mm512_maskz_mul_ps(seen, weight, _mm512_set1_ps(*v_scale))};
  }
  if (v_scale == nullptr) return {weight, weight};
  return {weight, _mm512_mul_ps(weight, _mm512_set1_ps(*v_scale))};
}

// The weights of 32 rows starting at `row`, transposed to a tile of 16 columns x 32 keys. v_scales:
// int8 only, or null.
template <bool kMasked>
OCTAVO_INLINE void weigh_step(const ColumnTile& t, const float* scores, const float* v_scales,
                              int64_t row, __m512 highest, __m512 sums[4], std::byte* tile) {
  const __m512i interleave =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  __m512 pairs[16];
  _Pragma("GCC unroll 16") for (int i = 0; i < 16; ++i) {
    const int j = 2 * i;
    const auto weigh_row = [&](int key) OCTAVO_INLINE_LAMBDA {
      return weight_row<kMasked>(t, scores + key * kLanes,
                                 v_scales != nullptr ? v_scales + key : nullptr, row + key,
                                 highest);
    };
    const WeightRow even = weigh_row(j);
    const WeightRow odd = weigh_row(j + 1);
    sums[j % 4] = _mm512_add_ps(sums[j % 4], even.share);
    sums[j % 4 + 1] = _mm512_add_ps(sums[j % 4 + 1], odd.share);
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.scaled, even.scaled));
    pairs[i] = _mm512_castsi512_ps(_mm512_permutexvar_epi16(interleave, both));
  }
  transpose16(pairs);
  for (int i = 0; i < 16; ++i) _mm512_store_ps(tile + i * kTileRowBytes, pairs[i]);
}

// Converts scores of a column tile to weights, with their max and sum.
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
      weigh_step<false>(t, from, v_scales, row, highest, sums, tiles + step * kTileBytes);
    } else {
      weigh_step<true>(t, from, v_scales, row, highest, sums, tiles + step * kTileBytes);
    }
  }
  _mm512_store_ps(x.part.max + block * kLanes, highest);
  _mm512_store_ps(x.part.sum + block * kLanes,
                  _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
