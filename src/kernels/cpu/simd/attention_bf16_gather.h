// attention_bf16_gather.h - float32 copies of a split's bfloat16 or int8 K and V in the order in
// which attention_bf16.h multiplies them. No MLX.
#pragma once

#include "kernels/cpu/simd/attention_values.h"
#include "kernels/cpu/simd/dot_tile.h"
#include "kernels/cpu/simd/reg_pairs.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Columns that share one pass over a split's copies.
inline constexpr int64_t kChunkColumns = 32;

// Scratch memory of a piece; all sizes are multiples of 64 bytes.
struct Bf16Scratch {
  AttentionResult total;
  AttentionResult part;  // of one chunk
  float* q;              // [padded_columns][k_pad]
  float* k;              // [kSteps][k_pad][kStepKeys]
  float* v;              // [kSplitTokens][v_pad]
  float* k_scales;       // [kSplitTokens], int8 only
  float* v_scales;       // [kSplitTokens]
  float* weights;        // [kChunkColumns][kSplitTokens]: scores, then weights
  uint16_t* rows;        // [kRegLanes + 1][k_pad]: K of some keys; the last row is zero
  int64_t k_pad;         // k_dim to 32
  KeyRange keys;         // of the current split
  int64_t base;          // its first position
};

OCTAVO_INLINE int64_t chunk_floats(const AttentionShape& s) {
  return kChunkColumns * (2 + s.v_pad);
}

static int64_t bf16_attention_scratch(const AttentionPiece& item) {
  const AttentionShape s = attention_shape(item);
  const int64_t k_pad = round_up(item.job->layout.k_dim, kChainInputs);
  const int64_t floats = result_floats(s) + chunk_floats(s) + s.padded_columns * k_pad +
                         kSplitTokens * (k_pad + s.v_pad + 2 + kChunkColumns);
  return floats * 4 + (kRegLanes + 1) * k_pad * 2;
}

OCTAVO_INLINE void place_bf16_scratch(const AttentionPiece& item, const AttentionShape& s,
                                      std::byte* memory, Bf16Scratch& x) {
  x.k_pad = round_up(item.job->layout.k_dim, kChainInputs);
  auto* floats = reinterpret_cast<float*>(memory);
  x.total = result_at(floats, s);
  floats += result_floats(s);
  x.part = {floats, floats + kChunkColumns, floats + 2 * kChunkColumns};
  x.q = floats + chunk_floats(s);
  x.k = x.q + s.padded_columns * x.k_pad;
  x.v = x.k + kSplitTokens * x.k_pad;
  x.k_scales = x.v + kSplitTokens * s.v_pad;
  x.v_scales = x.k_scales + kSplitTokens;
  x.weights = x.v_scales + kSplitTokens;
  x.rows = reinterpret_cast<uint16_t*>(x.weights + kChunkColumns * kSplitTokens);
  std::memset(x.rows, 0, static_cast<size_t>((kRegLanes + 1) * x.k_pad * 2));
}

OCTAVO_INLINE void widen_queries(const AttentionPiece& item, const AttentionShape& s,
                                 const Bf16Scratch& x) {
  const AttentionJob& job = *item.job;
  const int64_t dim = job.layout.k_dim;
  for (int64_t c = 0; c < s.columns; ++c) {
    const int64_t row = item.row_begin + c / s.group;
    const int64_t head = item.head_begin + c % s.group;
    float* q = x.q + c * x.k_pad;
    store(q + x.k_pad - kLanes, zero());  // what is not written below
    widen(job.q, job.dtype, (row * job.q_heads + head) * dim, dim, q);
  }
}

// The bfloat16 row of a key with zeros to k_pad: in the page, or a copy in x.rows[i].
OCTAVO_INLINE const uint16_t* key_row(const AttentionPiece& item, const Bf16Scratch& x,
                                      int64_t position, int64_t i) {
  const PageLayout& l = item.job->layout;
  if (position < x.keys.from || position >= x.keys.to) return x.rows + kRegLanes * x.k_pad;
  const PageSlot at = slot_of(item, position);
  const std::byte* row = at.head + at.slot * l.k_row_bytes;
  if (!l.int8 && l.k_dim == x.k_pad) return reinterpret_cast<const uint16_t*>(row);
  uint16_t* copy = x.rows + i * x.k_pad;
  if (!l.int8) {
    std::memcpy(copy, row, static_cast<size_t>(l.k_row_bytes));
    return copy;
  }
  alignas(64) float numbers[kLargestHead];
  widen_int8(reinterpret_cast<const int8_t*>(row), l.k_dim, numbers);
  for (int64_t d = 0; d < l.k_dim; d += kLanes) store_bf16(copy + d, load(numbers + d));
  return copy;
}

// Keys of one step, one number of all of them after the other; zeros for those outside x.keys.
static void gather_step_keys(const AttentionPiece& item, const Bf16Scratch& x, int64_t step) {
  float* to = x.k + step * x.k_pad * kStepKeys;
  for (int64_t first = 0; first < kStepKeys; first += kRegLanes, to += kRegLanes) {
    const uint16_t* row[kRegLanes];
    for (int64_t i = 0; i < kRegLanes; ++i)
      row[i] = key_row(item, x, x.base + step * kStepKeys + first + i, i);
    for (int64_t d = 0; d < x.k_pad; d += 2 * kRegLanes) {
      Reg pairs[kRegLanes];
      for (int i = 0; i < kRegLanes; ++i) pairs[i] = reg_load_bits(row[i] + d);
      reg_transpose(pairs);
      for (int i = 0; i < kRegLanes; ++i) {
        reg_store(to + (d + 2 * i) * kStepKeys, reg_first_bf16(pairs[i]));
        reg_store(to + (d + 2 * i + 1) * kStepKeys, reg_second_bf16(pairs[i]));
      }
    }
  }
}

// V of `position` and the one after it from paired pages.
OCTAVO_INLINE void widen_value_pair(const AttentionPiece& item, int64_t position, float* first,
                                    float* second) {
  const PageLayout& l = item.job->layout;
  const PageSlot at = slot_of(item, position);
  const std::byte* pairs = at.head + l.v_first + at.slot / 2 * (2 * l.v_row_bytes);
  for (int64_t d = 0; d < l.v_dim; d += kRegLanes) {
    const Reg both = reg_load_bits(pairs + d * 4);
    reg_store(first + d, reg_first_bf16(both));
    reg_store(second + d, reg_second_bf16(both));
  }
}

// V of one step; zeros for positions outside x.keys.
static void gather_step_values(const AttentionPiece& item, const AttentionShape& s,
                               const Bf16Scratch& x, int64_t step) {
  const PageLayout& l = item.job->layout;
  const bool pairs = l.paired_values && l.v_dim == s.v_pad;
  const int64_t first = x.base + step * kStepKeys;
  for (int64_t p = first; p < first + kStepKeys; ++p) {
    float* to = x.v + (p - x.base) * s.v_pad;
    if (pairs && p % 2 == 0 && p >= x.keys.from && p + 1 < x.keys.to) {
      widen_value_pair(item, p, to, to + s.v_pad);
      ++p;
    } else if (p >= x.keys.from && p < x.keys.to) {
      widen_value(item, p, to);
    } else {
      for (int64_t d = 0; d < s.v_pad; d += kLanes) store(to + d, zero());
    }
  }
}

static void gather_split(const AttentionPiece& item, const AttentionShape& s,
                         const Bf16Scratch& x) {
  const PageLayout& l = item.job->layout;
  const StepRange steps = steps_of(x.keys, x.base);
  for (int64_t step = steps.from; step < steps.to; ++step) {
    gather_step_keys(item, x, step);
    gather_step_values(item, s, x, step);
  }
  if (!l.int8) return;
  for (int64_t p = x.keys.from; p < x.keys.to; ++p) {
    const PageSlot at = slot_of(item, p);
    std::memcpy(x.k_scales + (p - x.base), at.head + l.k_scales + at.slot * 4, 4);
    std::memcpy(x.v_scales + (p - x.base), at.head + l.v_scales + at.slot * 4, 4);
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
