// attention_fold.h - how the partial results of attention are stored, folded and finished. The
// arithmetic is the same whether one thread or several computed a row's splits. No MLX.
//
// Scores are in units of log2 e, so that weights are powers of two. An empty partial has the lowest
// score and a sum of zero: folding it changes no bit.
#pragma once

#include "kernels/cpu/attention_item.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr float kNothing = -3e38f;
inline constexpr float kLog2E = 1.44269504f;

// 2^x for x <= 0 to 2e-7; never below 2^-126.
OCTAVO_INLINE Vec exp2_down(Vec x) {
  x = max(x, set1(-126));
  const Vec n = round_even(x);
  const Vec r = sub(x, n);
  Vec p = set1(1.3264724e-3f);
  p = fma(p, r, set1(9.671513e-3f));
  p = fma(p, r, set1(5.5507336e-2f));
  p = fma(p, r, set1(2.4022242e-1f));
  p = fma(p, r, set1(6.93147e-1f));
  p = fma(p, r, set1(1));
  return mul(p, pow2(n));
}

// 2^(from - to), where from <= to: the factor of a result when its maximum rises. Exactly 1 for
// infinite maxima too, so that folding an empty partial changes no bit.
OCTAVO_INLINE Vec fall(Vec from, Vec to) {
  return if_less(from, to, exp2_down(sub(from, to)), set1(1));
}

OCTAVO_INLINE int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Sizes of a piece, computed once.
struct AttentionShape {
  int64_t group;           // query heads of the piece
  int64_t columns;         // rows x group
  int64_t padded_columns;  // to 16
  int64_t v_pad;           // v_dim to 16
};
OCTAVO_INLINE AttentionShape attention_shape(const AttentionPiece& item) {
  AttentionShape s;
  s.group = item.heads;
  s.columns = (item.row_end - item.row_begin) * s.group;
  s.padded_columns = round_up(s.columns, kLanes);
  s.v_pad = round_up(item.job->layout.v_dim, kLanes);
  return s;
}

// Per column: the highest score, the sum of weights below it, and the weighted values.
struct AttentionResult {
  float* max;     // [padded_columns]
  float* sum;     // [padded_columns]
  float* values;  // [padded_columns][v_pad]
};
OCTAVO_INLINE int64_t result_floats(const AttentionShape& s) {
  return s.padded_columns * (2 + s.v_pad);
}
OCTAVO_INLINE AttentionResult result_at(float* memory, const AttentionShape& s) {
  return {memory, memory + s.padded_columns, memory + 2 * s.padded_columns};
}

// The columns starting at `column`.
OCTAVO_INLINE AttentionResult result_from(const AttentionResult& r, const AttentionShape& s,
                                          int64_t column) {
  return {r.max + column, r.sum + column, r.values + column * s.v_pad};
}

// Empties columns [begin, end); begin is a multiple of 16, and values are padded to one.
static void clear_result(const AttentionResult& r, const AttentionShape& s, int64_t begin,
                         int64_t end) {
  for (int64_t c = begin; c < end; c += kLanes) {
    store(r.max + c, set1(kNothing));
    store(r.sum + c, zero());
  }
  const int64_t last = round_up(end, kLanes) * s.v_pad;
  for (int64_t i = begin * s.v_pad; i < last; i += kLanes) store(r.values + i, zero());
}

static void fold_result(const AttentionResult& total, const AttentionResult& part,
                        const AttentionShape& s, int64_t begin, int64_t end) {
  alignas(64) float keep[kLanes];
  alignas(64) float take[kLanes];
  for (int64_t first = begin; first < end; first += kLanes) {
    const Vec old_max = load(total.max + first);
    const Vec part_max = load(part.max + first);
    const Vec new_max = max(old_max, part_max);
    const Vec keep_all = fall(old_max, new_max);
    const Vec take_all = fall(part_max, new_max);
    const Vec kept = mul(load(total.sum + first), keep_all);
    store(total.sum + first, fma(load(part.sum + first), take_all, kept));
    store(total.max + first, new_max);
    store(keep, keep_all);
    store(take, take_all);
    const int64_t count = end - first < kLanes ? end - first : kLanes;
    for (int64_t c = 0; c < count; ++c) {
      float* into = total.values + (first + c) * s.v_pad;
      const float* from = part.values + (first + c) * s.v_pad;
      const Vec k = set1(keep[c]);
      const Vec t = set1(take[c]);
      for (int64_t d = 0; d < s.v_pad; d += kLanes) {
        store(into + d, fma(load(from + d), t, mul(load(into + d), k)));
      }
    }
  }
}

// The factor of each of the sixteen columns starting at `first`.
OCTAVO_INLINE Vec final_scale(const AttentionPiece& item, const AttentionResult& r,
                              const AttentionShape& s, int64_t first) {
  const Vec sum = load(r.sum + first);
  const float* sinks = item.job->options.sinks;
  if (sinks == nullptr) return div(set1(1), sum);
  alignas(64) float sink[kLanes];
  for (int64_t c = 0; c < kLanes; ++c) {
    sink[c] = sinks[item.head_begin + (first + c) % s.group] * kLog2E;
  }
  const Vec old_max = load(r.max + first);
  const Vec new_max = max(old_max, load(sink));
  const Vec keep = fall(old_max, new_max);
  return div(keep, fma(sum, keep, fall(load(sink), new_max)));
}

static void write_out(const AttentionPiece& item, const AttentionResult& r,
                      const AttentionShape& s) {
  const AttentionJob& job = *item.job;
  const int64_t dim = job.layout.v_dim;
  alignas(64) float scale[kLanes];
  for (int64_t c = 0; c < s.columns; ++c) {
    if (c % kLanes == 0) store(scale, final_scale(item, r, s, c));
    const int64_t row = item.row_begin + c / s.group;
    const int64_t head = item.head_begin + c % s.group;
    const int64_t first = (row * job.q_heads + head) * dim;
    const Vec by = set1(scale[c % kLanes]);
    const float* values = r.values + c * s.v_pad;
    for (int64_t d = 0; d < dim; d += kLanes) {
      // A masked key adds a zero of either sign; adding +0 normalises it.
      const Vec v = add(mul(load(values + d), by), zero());
      if (d + kLanes <= dim) {
        store_as(job.out, job.dtype, first + d, v);
      } else {
        store_part(job.out, job.dtype, first + d, dim - d, v);
      }
    }
  }
}

OCTAVO_INLINE int64_t position_of(const AttentionPiece& item, const AttentionShape& s,
                                  int64_t column) {
  return item.position + column / s.group;
}

// The first position visible to a column; it never decreases from one column to the next.
OCTAVO_INLINE int64_t first_visible(const AttentionPiece& item, const AttentionShape& s,
                                    int64_t column) {
  const int64_t window = item.job->options.window;
  const int64_t own = position_of(item, s, column);
  return window > 0 && own >= window ? own - window + 1 : 0;
}

// The last position visible to some of the piece's rows [begin, end). Apart, so that causal attention
// contains a call of it at most.
[[gnu::noinline, gnu::cold]] static int64_t last_visible_to_rows(const AttentionPiece& item,
                                                                 int64_t begin, int64_t end) {
  const int32_t* of_rows = item.job->last_visible + item.row_begin;
  int64_t last = 0;
  for (int64_t row = begin; row < end; ++row)
    if (of_rows[row] > last) last = of_rows[row];
  return last;
}

// The last position visible to some column in [begin, end).
OCTAVO_INLINE int64_t last_visible(const AttentionPiece& item, const AttentionShape& s,
                                   int64_t begin, int64_t end) {
  if (item.job->last_visible == nullptr) return position_of(item, s, end - 1);
  return last_visible_to_rows(item, begin / s.group, (end - 1) / s.group + 1);
}

// The positions of one split visible to some column in [begin, end); empty if to <= from.
struct KeyRange {
  int64_t from;
  int64_t to;
};
OCTAVO_INLINE KeyRange keys_of(const AttentionPiece& item, const AttentionShape& s, int64_t split,
                               int64_t begin, int64_t end) {
  KeyRange r = {first_visible(item, s, begin), last_visible(item, s, begin, end) + 1};
  if (r.from < split * kSplitTokens) r.from = split * kSplitTokens;
  if (r.to > (split + 1) * kSplitTokens) r.to = (split + 1) * kSplitTokens;
  return r;
}

// bfloat16 kernels process keys 32 at a time, at absolute positions.
inline constexpr int64_t kStepKeys = 32;
inline constexpr int64_t kSteps = kSplitTokens / kStepKeys;

// Steps [from, to) of a split.
struct StepRange {
  int64_t from;
  int64_t to;
};

// The steps that `keys` touch; base is the split's first position.
OCTAVO_INLINE StepRange steps_of(KeyRange keys, int64_t base) {
  return {(keys.from - base) / kStepKeys, (keys.to - base + kStepKeys - 1) / kStepKeys};
}

// The head's part of the page that contains `position`, and the token's slot in it.
struct PageSlot {
  const std::byte* head;
  int64_t slot;
};
OCTAVO_INLINE PageSlot slot_of(const AttentionPiece& item, int64_t position) {
  const PageLayout& l = item.job->layout;
  // 32-bit division is several times cheaper.
  const int64_t column = static_cast<uint32_t>(position) / static_cast<uint32_t>(l.block_tokens);
  return {
      item.job->pages + item.table[column] * item.job->page_stride + item.kv_head * l.head_bytes,
      position - column * l.block_tokens};
}

static int64_t partial_floats(const AttentionPiece& item) {
  return result_floats(attention_shape(item));
}

// Folds the partials of splits [split_begin, split_end) at item.partials and writes the rows.
static void merge_partials(const AttentionPiece& item, std::byte* scratch) {
  const AttentionShape s = attention_shape(item);
  const AttentionResult total = result_at(reinterpret_cast<float*>(scratch), s);
  clear_result(total, s, 0, s.columns);
  const int64_t floats = result_floats(s);
  for (int64_t split = item.split_begin; split < item.split_end; ++split) {
    const AttentionResult part = result_at(item.partials + (split - item.split_begin) * floats, s);
    fold_result(total, part, s, 0, s.columns);
  }
  write_out(item, total, s);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
