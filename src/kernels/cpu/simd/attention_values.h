// attention_values.h - V of one position as float32, and sums of values that leave out hidden keys.
// No MLX.
//
// Kernels process keys 32 at a time and give those that a column does not see a weight of zero. Zero
// times an infinity or NaN is NaN, so the sums of such a column are computed again if they are not finite.
#pragma once

#include "kernels/cpu/qkv_job.h"
#include "kernels/cpu/simd/attention_fold.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// `dim` numbers as float32, padded with zeros to a multiple of 16.
OCTAVO_INLINE void widen(const void* from, DType dtype, int64_t index, int64_t dim, float* out) {
  int64_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) store(out + d, load_as(from, dtype, index + d));
  if (d < dim) store(out + d, load_part(from, dtype, index + d, dim - d));
}
OCTAVO_INLINE void widen_int8(const int8_t* from, int64_t dim, float* out) {
  int64_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) store(out + d, load_i8(from + d));
  if (d == dim) return;
  int8_t rest[kLanes] = {};
  std::memcpy(rest, from + d, static_cast<size_t>(dim - d));
  store(out + d, load_i8(rest));
}

// V of `position`, without its scale if it is int8. out: [v_dim padded to 16]
static void widen_value(const AttentionPiece& item, int64_t position, float* out) {
  const PageLayout& l = item.job->layout;
  const PageSlot at = slot_of(item, position);
  const std::byte* v = at.head + l.v_first;
  if (l.int8)
    return widen_int8(reinterpret_cast<const int8_t*>(v + at.slot * l.v_row_bytes), l.v_dim, out);
  if (!l.paired_values) return widen(v + at.slot * l.v_row_bytes, l.dtype, 0, l.v_dim, out);
  const auto* pair = reinterpret_cast<const uint16_t*>(v + at.slot / 2 * (2 * l.v_row_bytes));
  for (int64_t d = 0; d < l.v_dim; d += kLanes) {
    uint16_t numbers[kLanes] = {};
    for (int64_t i = 0; i < kLanes && d + i < l.v_dim; ++i)
      numbers[i] = pair[2 * (d + i) + at.slot % 2];
    store(out + d, load_bf16(numbers));
  }
}

// Whether some key in both `keys` and `steps` of the split at `base` is not in `seen`.
OCTAVO_INLINE bool hides_keys(KeyRange keys, StepRange steps, int64_t base, KeyRange seen) {
  int64_t from = base + steps.from * kStepKeys;
  int64_t to = base + steps.to * kStepKeys;
  if (from < keys.from) from = keys.from;
  if (to > keys.to) to = keys.to;
  return seen.from > from || seen.to < to;
}

// count: a multiple of 16
OCTAVO_INLINE bool all_finite(const float* numbers, int64_t count) {
  Vec differences = zero();  // a number minus itself: NaN unless it is finite
  for (int64_t i = 0; i < count; i += kLanes)
    differences = add(differences, sub(load(numbers + i), load(numbers + i)));
  return sum(differences) == 0;
}

// values = weights V over the keys of `seen` only. weights: those of the split's keys, rounded to
// bfloat16; base: the split's first position
static void sum_seen_values(const AttentionPiece& item, const AttentionShape& s, int64_t base,
                            KeyRange seen, const float* weights, float* values) {
  alignas(64) float row[kLargestHead];
  alignas(64) float chains[2][kLargestHead];
  for (int64_t d = 0; d < s.v_pad; d += kLanes) store(values + d, zero());
  for (int64_t step = seen.from / kStepKeys * kStepKeys; step < seen.to; step += kStepKeys) {
    for (int64_t d = 0; d < s.v_pad; d += kLanes) {
      store(chains[0] + d, zero());
      store(chains[1] + d, zero());
    }
    const int64_t from = step < seen.from ? seen.from : step;
    const int64_t to = step + kStepKeys < seen.to ? step + kStepKeys : seen.to;
    for (int64_t p = from; p < to; ++p) {
      widen_value(item, p, row);
      const Vec weight = set1(weights[p - base]);
      float* chain = chains[p % 2];
      for (int64_t d = 0; d < s.v_pad; d += kLanes)
        store(chain + d, fma(weight, load(row + d), load(chain + d)));
    }
    for (int64_t d = 0; d < s.v_pad; d += kLanes)
      store(values + d, add(load(values + d), add(load(chains[0] + d), load(chains[1] + d))));
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
