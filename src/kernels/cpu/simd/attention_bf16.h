// attention_bf16.h - paged attention of bfloat16 queries without a tile unit, with the bits of
// attention_amx.h. No MLX.
//
// Products are computed as dot_tile.h describes: lanes run along 32 keys for the scores and along the
// head for the weighted sum of values. Each column's weights are computed by themselves, with lanes
// along the keys.
#pragma once

#include "kernels/cpu/simd/attention_bf16_gather.h"
#include "kernels/cpu/simd/weight_power.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

typedef float FourFloats __attribute__((vector_size(16)));

// The keys of a chunk's steps as seen by one column, as rows of the split.
struct ColumnKeys {
  KeyRange rows;     // of the steps
  KeyRange visible;  // of the column
};

// `yes` for sixteen rows starting at `row` that the column sees, `no` for others.
OCTAVO_INLINE Vec if_visible(const ColumnKeys& keys, int64_t row, Vec yes, Vec no) {
  if (row >= keys.visible.from && row + kLanes <= keys.visible.to) return yes;
  alignas(64) static constexpr float kCount[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                       8, 9, 10, 11, 12, 13, 14, 15};
  const Vec index = add(load(kCount), set1(static_cast<float>(row)));
  const Vec seen = if_less(set1(static_cast<float>(keys.visible.to - 1)), index, no, yes);
  return if_less(index, set1(static_cast<float>(keys.visible.from)), no, seen);
}

// Brings scores to their final form, except for the scale, and returns the highest.
OCTAVO_INLINE float finish_scores(const AttentionJob& job, const Bf16Scratch& x,
                                  const ColumnKeys& keys, float* scores) {
  const float soft_cap = job.options.soft_cap;
  const Vec scale = set1(job.options.scale / (soft_cap > 0 ? soft_cap : 1));
  Vec highest = set1(kNothing);
  for (int64_t row = keys.rows.from; row < keys.rows.to; row += kLanes) {
    Vec score = load(scores + row);
    if (job.layout.int8) score = mul(score, load(x.k_scales + row));
    if (soft_cap > 0) score = mul(set1(soft_cap * kLog2E), tanh(mul(score, scale)));
    score = if_visible(keys, row, score, set1(kNothing));
    highest = max(score, highest);
    store(scores + row, score);
  }
  return max_lane(highest);
}

// Converts the scores of a column to weights, not yet rounded, in place. Returns the maximum in units
// of log2 e.
static float soften_column(const AttentionJob& job, const Bf16Scratch& x, const ColumnKeys& keys,
                           float* scores) {
  const float highest = finish_scores(job, x, keys, scores);
  const float scale = job.options.soft_cap > 0 ? 1 : job.options.scale * kLog2E;
  const float max_score = highest > kNothing / 2 ? highest * scale : kNothing;
  for (int64_t row = keys.rows.from; row < keys.rows.to; row += kLanes) {
    Vec weight = fma(load(scores + row), set1(scale), set1(-max_score));
    for (Reg& r : weight.r) r = exp2_weight(r);
    store(scores + row, if_visible(keys, row, weight, zero()));
  }
  return max_score;
}

// The sum of a column's weights: those of every fourth key in order, then these four sums.
OCTAVO_INLINE float sum_weights(const float* weights, KeyRange rows) {
  FourFloats sums = {0, 0, 0, 0};
  for (int64_t row = rows.from; row < rows.to; row += 4) {
    FourFloats four;
    std::memcpy(&four, weights + row, sizeof(four));
    sums += four;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Applies the scales of int8 values and rounds to bfloat16.
OCTAVO_INLINE void round_weights(const AttentionJob& job, const Bf16Scratch& x,
                                 const ColumnKeys& keys, float* weights) {
  for (int64_t row = keys.rows.from; row < keys.rows.to; row += kLanes) {
    Vec weight = load(weights + row);
    if (job.layout.int8)
      weight = if_visible(keys, row, mul(weight, load(x.v_scales + row)), zero());
    store(weights + row, round_to(DType::kBFloat16, weight));
  }
}

// The partial of columns [begin, end) into x.part; at most kChunkColumns.
static void attend_chunk(const AttentionPiece& item, const AttentionShape& s, const Bf16Scratch& x,
                         int64_t begin, int64_t end) {
  const int64_t split = x.base / kSplitTokens;
  const int64_t columns = end - begin;
  const StepRange steps = steps_of(keys_of(item, s, split, begin, end), x.base);
  const KeyRange rows = {steps.from * kStepKeys, steps.to * kStepKeys};
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t row = rows.from; row < rows.to; row += kLanes)
      store(x.weights + c * kSplitTokens + row, zero());
  for (int64_t step = steps.from; step < steps.to; ++step) {
    for (int64_t d = 0; d < x.k_pad; d += kChainInputs) {
      add_dot_tile({x.q + begin * x.k_pad + d, x.k_pad, x.k + (step * x.k_pad + d) * kStepKeys,
                    kStepKeys, x.weights + step * kStepKeys, kSplitTokens},
                   columns, kStepKeys);
    }
  }
  clear_result(x.part, s, 0, columns);
  for (int64_t c = 0; c < columns; ++c) {
    const KeyRange seen = keys_of(item, s, split, begin + c, begin + c + 1);
    const ColumnKeys keys = {rows, {seen.from - x.base, seen.to - x.base}};
    float* weights = x.weights + c * kSplitTokens;
    x.part.max[c] = soften_column(*item.job, x, keys, weights);
    x.part.sum[c] = sum_weights(weights, rows);
    round_weights(*item.job, x, keys, weights);
  }
  for (int64_t step = steps.from; step < steps.to; ++step) {
    add_dot_tile({x.weights + step * kStepKeys, kSplitTokens, x.v + step * kStepKeys * s.v_pad,
                  s.v_pad, x.part.values, s.v_pad},
                 columns, s.v_pad);
  }
  for (int64_t c = 0; c < columns; ++c) {
    const KeyRange seen = keys_of(item, s, split, begin + c, begin + c + 1);
    float* values = x.part.values + c * s.v_pad;
    if (hides_keys(x.keys, steps, x.base, seen) && !all_finite(values, s.v_pad))
      sum_seen_values(item, s, x.base, seen, x.weights + c * kSplitTokens, values);
  }
}

static void bf16_attend(const AttentionPiece& item, std::byte* scratch) {
  const AttentionShape s = attention_shape(item);
  Bf16Scratch x;
  place_bf16_scratch(item, s, scratch, x);
  widen_queries(item, s, x);
  const bool fold = item.partials == nullptr;
  if (fold) clear_result(x.total, s, 0, s.columns);
  for (int64_t split = item.split_begin; split < item.split_end; ++split) {
    x.base = split * kSplitTokens;
    x.keys = keys_of(item, s, split, 0, s.columns);
    gather_split(item, s, x);
    for (int64_t c = 0; c < s.columns; c += kChunkColumns) {
      const int64_t end = c + kChunkColumns < s.columns ? c + kChunkColumns : s.columns;
      const KeyRange keys = keys_of(item, s, split, c, end);
      if (!fold) {
        float* partial = item.partials + (split - item.split_begin) * result_floats(s);
        x.part = result_from(result_at(partial, s), s, c);
      }
      if (keys.from < keys.to) {
        attend_chunk(item, s, x, c, end);
        if (fold) fold_result(result_from(x.total, s, c), x.part, s, 0, end - c);
      } else if (!fold) {
        clear_result(x.part, s, 0, end - c);
      }
    }
  }
  if (fold) write_out(item, x.total, s);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
