// attention.h - paged attention of float32 and float16 queries, over fp32 copies of a split's K and V.
// No MLX.
//
// Lanes run along the head for dot products and for the weighted sum of values, and along sixteen
// keys at absolute positions for the softmax. The summation order of a (column, key) product does
// not depend on the blocking of columns and keys.
#pragma once

#include "kernels/cpu/simd/attention_values.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Columns and keys that share their loads: as many as fit in registers.
inline constexpr int kColumnBlock = kRegs == 1 ? 4 : 2;
inline constexpr int kKeyBlock = kRegs == 1 ? 4 : 2;
inline constexpr int kValueBlock = kRegs == 1 ? 4 : 2;  // in sixteens of the head

// Scratch memory of a piece; all sizes are multiples of 64 bytes.
struct AttentionScratch {
  AttentionResult total;
  AttentionResult part;
  float* q;         // [padded_columns][k_pad]
  float* k;         // [kSplitTokens][k_pad]
  float* v;         // [kSplitTokens][v_stride]: equals k if values are in keys
  float* k_scales;  // [kSplitTokens], int8 only
  float* v_scales;  // [kSplitTokens]
  float* weights;   // [kColumnBlock][kSplitTokens]
  int64_t k_pad;
  int64_t v_stride;
};

// Floats of a separate row of V.
OCTAVO_INLINE int64_t own_v_stride(const AttentionPiece& item, const AttentionShape& s) {
  return item.job->layout.values_in_keys ? 0 : s.v_pad;
}

OCTAVO_INLINE int64_t generic_scratch_floats(const AttentionPiece& item) {
  const AttentionShape s = attention_shape(item);
  const int64_t k_pad = round_up(item.job->layout.k_dim, kLanes);
  return 2 * result_floats(s) + s.padded_columns * k_pad +
         kSplitTokens * (k_pad + own_v_stride(item, s) + 2 + kColumnBlock);
}

OCTAVO_INLINE AttentionScratch generic_scratch(const AttentionPiece& item, const AttentionShape& s,
                                               float* memory) {
  AttentionScratch x;
  x.k_pad = round_up(item.job->layout.k_dim, kLanes);
  x.total = result_at(memory, s);
  x.part = result_at(memory + result_floats(s), s);
  x.q = memory + 2 * result_floats(s);
  x.k = x.q + s.padded_columns * x.k_pad;
  const bool shared = item.job->layout.values_in_keys;
  float* after_k = x.k + kSplitTokens * x.k_pad;
  x.v = shared ? x.k : after_k;
  x.v_stride = shared ? x.k_pad : s.v_pad;
  x.k_scales = after_k + kSplitTokens * own_v_stride(item, s);
  x.v_scales = x.k_scales + kSplitTokens;
  x.weights = x.v_scales + kSplitTokens;
  return x;
}

static void load_queries(const AttentionPiece& item, const AttentionShape& s,
                         const AttentionScratch& x) {
  const AttentionJob& job = *item.job;
  for (int64_t c = 0; c < s.columns; ++c) {
    const int64_t row = item.row_begin + c / s.group;
    const int64_t head = item.head_begin + c % s.group;
    widen(job.q, job.dtype, (row * job.q_heads + head) * job.layout.k_dim, job.layout.k_dim,
          x.q + c * x.k_pad);
  }
}

// K and V of `keys`; position `base` is row 0.
static void load_keys(const AttentionPiece& item, const AttentionScratch& x, KeyRange keys,
                      int64_t base) {
  const PageLayout& l = item.job->layout;
  for (int64_t p = keys.from; p < keys.to; ++p) {
    const PageSlot at = slot_of(item, p);
    const std::byte* k = at.head + at.slot * l.k_row_bytes;
    const std::byte* v = at.head + l.v_first + at.slot * l.v_row_bytes;
    float* k_out = x.k + (p - base) * x.k_pad;
    float* v_out = x.v + (p - base) * x.v_stride;
    if (l.int8) {
      widen_int8(reinterpret_cast<const int8_t*>(k), l.k_dim, k_out);
      widen_int8(reinterpret_cast<const int8_t*>(v), l.v_dim, v_out);
      std::memcpy(x.k_scales + (p - base), at.head + l.k_scales + at.slot * 4, 4);
      std::memcpy(x.v_scales + (p - base), at.head + l.v_scales + at.slot * 4, 4);
    } else {
      widen(k, l.dtype, 0, l.k_dim, k_out);
      if (!l.values_in_keys) widen(v, l.dtype, 0, l.v_dim, v_out);
    }
  }
}

// scores[c][j] = q[c] . k[j]
template <int kColumns, int kKeys>
OCTAVO_INLINE void score_block(const float* q, const float* k, int64_t pad, float* scores) {
  Vec sums[kColumns][kKeys];
  for (int c = 0; c < kColumns; ++c)
    for (int j = 0; j < kKeys; ++j) sums[c][j] = zero();
  for (int64_t d = 0; d < pad; d += kLanes) {
    Vec key[kKeys];
    for (int j = 0; j < kKeys; ++j) key[j] = load(k + j * pad + d);
    for (int c = 0; c < kColumns; ++c) {
      const Vec query = load(q + c * pad + d);
      for (int j = 0; j < kKeys; ++j) sums[c][j] = fma(query, key[j], sums[c][j]);
    }
  }
  for (int c = 0; c < kColumns; ++c)
    for (int j = 0; j < kKeys; ++j) scores[c * kSplitTokens + j] = sum(sums[c][j]);
}

// Rows [from, to) of the split.
template <int kColumns>
OCTAVO_INLINE void score_columns(const AttentionScratch& x, int64_t column, int64_t from,
                                 int64_t to) {
  const float* q = x.q + column * x.k_pad;
  int64_t j = from;
  for (; j + kKeyBlock <= to; j += kKeyBlock)
    score_block<kColumns, kKeyBlock>(q, x.k + j * x.k_pad, x.k_pad, x.weights + j);
  for (; j < to; ++j) score_block<kColumns, 1>(q, x.k + j * x.k_pad, x.k_pad, x.weights + j);
}

// Converts scores of `rows` of the split to weights, in place; those outside `visible` become zero.
// Writes the column's max and sum.
static void soften(const AttentionPiece& item, const AttentionScratch& x, float* weights,
                   KeyRange rows, KeyRange visible, int64_t column) {
  const AttentionJob& job = *item.job;
  alignas(64) static constexpr float kCount[kLanes] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                       8, 9, 10, 11, 12, 13, 14, 15};
  const int64_t begin = rows.from / kLanes * kLanes;
  const Vec first = set1(static_cast<float>(visible.from));
  const Vec last = set1(static_cast<float>(visible.to - 1));
  const Vec nothing = set1(kNothing);
  const bool capped = job.options.soft_cap > 0;
  const Vec scale =
      set1(capped ? job.options.scale / job.options.soft_cap : job.options.scale * kLog2E);
  const Vec cap = set1(job.options.soft_cap * kLog2E);
  Vec highest = nothing;
  for (int64_t j = begin; j < rows.to; j += kLanes) {
    Vec score = load(weights + j);
    if (job.layout.int8) score = mul(score, load(x.k_scales + j));
    score = mul(score, scale);
    if (capped) score = mul(cap, tanh(score));
    const Vec key = add(load(kCount), set1(static_cast<float>(j)));
    score = if_less(key, first, nothing, score);
    score = if_less(last, key, nothing, score);
    highest = max(score, highest);
    store(weights + j, score);
  }
  const float max_score = max_lane(highest);
  Vec total = zero();
  const Vec seen = set1(kNothing / 2);
  for (int64_t j = begin; j < rows.to; j += kLanes) {
    const Vec score = load(weights + j);
    Vec weight = if_less(score, seen, zero(), exp2_down(sub(score, set1(max_score))));
    total = add(total, weight);
    if (job.layout.int8) {
      weight = if_less(score, seen, zero(), mul(weight, load(x.v_scales + j)));
    }
    store(weights + j, weight);
  }
  x.part.max[column] = max_score;
  x.part.sum[column] = sum(total);
}

// values[c][d] = sum over `rows` of weights[c][j] v[j][d], for kWidth sixteens of d.
template <int kColumns, int kWidth>
OCTAVO_INLINE void value_block(const float* weights, const float* v, int64_t v_stride,
                               KeyRange rows, float* values, int64_t values_stride) {
  Vec sums[kColumns][kWidth];
  for (int c = 0; c < kColumns; ++c)
    for (int w = 0; w < kWidth; ++w) sums[c][w] = zero();
  for (int64_t j = rows.from; j < rows.to; ++j) {
    Vec value[kWidth];
    for (int w = 0; w < kWidth; ++w) value[w] = load(v + j * v_stride + w * kLanes);
    for (int c = 0; c < kColumns; ++c) {
      const Vec weight = set1(weights[c * kSplitTokens + j]);
      for (int w = 0; w < kWidth; ++w) sums[c][w] = fma(weight, value[w], sums[c][w]);
    }
  }
  for (int c = 0; c < kColumns; ++c)
    for (int w = 0; w < kWidth; ++w) store(values + c * values_stride + w * kLanes, sums[c][w]);
}

// The partial of columns [column, column + kColumns).
template <int kColumns>
static void attend_columns(const AttentionPiece& item, const AttentionShape& s,
                           const AttentionScratch& x, int64_t split, int64_t column) {
  const int64_t base = split * kSplitTokens;
  const KeyRange keys = keys_of(item, s, split, column, column + kColumns);
  const KeyRange rows = {keys.from - base, keys.to - base};
  float* values = x.part.values + column * s.v_pad;
  if (rows.to <= rows.from) {
    for (int64_t d = 0; d < kColumns * s.v_pad; d += kLanes) store(values + d, zero());
    return;
  }
  for (int c = 0; c < kColumns; ++c) {
    // Sixteens that the rows cover only partly are converted as a whole.
    store(x.weights + c * kSplitTokens + rows.from / kLanes * kLanes, zero());
    store(x.weights + c * kSplitTokens + (rows.to - 1) / kLanes * kLanes, zero());
  }
  score_columns<kColumns>(x, column, rows.from, rows.to);
  for (int c = 0; c < kColumns; ++c) {
    const KeyRange own = keys_of(item, s, split, column + c, column + c + 1);
    soften(item, x, x.weights + c * kSplitTokens, rows, {own.from - base, own.to - base},
           column + c);
  }
  int64_t d = 0;
  for (; d + kValueBlock * kLanes <= s.v_pad; d += kValueBlock * kLanes)
    value_block<kColumns, kValueBlock>(x.weights, x.v + d, x.v_stride, rows, values + d, s.v_pad);
  for (; d < s.v_pad; d += kLanes)
    value_block<kColumns, 1>(x.weights, x.v + d, x.v_stride, rows, values + d, s.v_pad);
}

// The partial of columns [begin, end), at most sixteen.
static void attend_sixteen(const AttentionPiece& item, const AttentionShape& s,
                           const AttentionScratch& x, int64_t split, int64_t begin, int64_t end) {
  store(x.part.max + begin, set1(kNothing));
  store(x.part.sum + begin, zero());
  int64_t c = begin;
  for (; c + kColumnBlock <= end; c += kColumnBlock)
    attend_columns<kColumnBlock>(item, s, x, split, c);
  for (; c + 2 <= end; c += 2) attend_columns<2>(item, s, x, split, c);
  for (; c < end; ++c) attend_columns<1>(item, s, x, split, c);
}

static int64_t generic_attention_scratch(const AttentionPiece& item) {
  return generic_scratch_floats(item) * static_cast<int64_t>(sizeof(float));
}

static void generic_attend(const AttentionPiece& item, std::byte* scratch) {
  const AttentionShape s = attention_shape(item);
  AttentionScratch x = generic_scratch(item, s, reinterpret_cast<float*>(scratch));
  load_queries(item, s, x);
  const bool fold = item.partials == nullptr;
  if (fold) clear_result(x.total, s, 0, s.columns);
  for (int64_t split = item.split_begin; split < item.split_end; ++split) {
    if (!fold) x.part = result_at(item.partials + (split - item.split_begin) * result_floats(s), s);
    load_keys(item, x, keys_of(item, s, split, 0, s.columns), split * kSplitTokens);
    for (int64_t c = 0; c < s.columns; c += kLanes) {
      const int64_t end = c + kLanes < s.columns ? c + kLanes : s.columns;
      const KeyRange keys = keys_of(item, s, split, c, end);
      if (keys.from < keys.to) {
        attend_sixteen(item, s, x, split, c, end);
        if (fold) fold_result(x.total, x.part, s, c, end);
      } else if (!fold) {
        clear_result(x.part, s, c, end);
      }
    }
  }
  if (fold) write_out(item, x.total, s);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
