// logit_blocks.h - passes over a row of logits, for sampling and logprobs. No MLX.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/argmax.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Replaces smaller powers and NaN.
inline constexpr float kLowestPower = -126;
// Above 2^kLowestPower, too small to affect a draw.
inline constexpr float kSmallestWeight = 2e-38f;

// Sixteen numbers, or the remaining `count` < 16 followed by `filler`.
OCTAVO_INLINE Vec load_filled(const float* p, int64_t count, float filler) {
  if (count >= kLanes) return load(p);
  alignas(64) float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i < count ? p[i] : filler;
  return load(lanes);
}
OCTAVO_INLINE void store_upto(float* p, int64_t count, Vec v) {
  if (count >= kLanes) return store(p, v);
  store_part(p, DType::kFloat32, 0, count, v);
}

static void block_maxima(const float* logits, int64_t count, float* maxima) {
  for (int64_t i = 0; i < count; i += kLogitBlock)
    *maxima++ = largest_of(logits + i, count - i < kLogitBlock ? count - i : kLogitBlock);
}

static void weigh(const WeighJob& job, float* weights, float* sums) {
  const Vec largest = set1(job.largest);
  const Vec scale = set1(job.scale);
  const Vec lowest = set1(kLowestPower);
  const Vec floor = set1(job.floor > kSmallestWeight ? job.floor : kSmallestWeight);
  for (int64_t begin = 0; begin < job.count; begin += kLogitBlock) {
    const int64_t end = begin + kLogitBlock < job.count ? begin + kLogitBlock : job.count;
    Vec total = zero();
    for (int64_t i = begin; i < end; i += kLanes) {
      const Vec x = load_filled(job.logits + i, end - i, -__builtin_inff());
      // The bound is the second operand: max returns it for NaN.
      Vec w = exp2(max(mul(sub(x, largest), scale), lowest));
      w = if_less(w, floor, zero(), w);
      store_upto(weights + i, end - i, w);
      total = add(total, w);
    }
    *sums++ = sum(total);
  }
}

template <bool kWeighted>
OCTAVO_INLINE void sums_from_of(const float* logits, const float* weights, int64_t count,
                                const float* thresholds, double* sums) {
  constexpr int64_t kGroup = 1024;  // short enough for float32 sums, long enough to fold rarely
  for (int t = 0; t < kThresholds; ++t) sums[t] = 0;
  for (int64_t begin = 0; begin < count; begin += kGroup) {
    const int64_t end = begin + kGroup < count ? begin + kGroup : count;
    Vec totals[kThresholds];
    for (auto& total : totals) total = zero();
    for (int64_t i = begin; i < end; i += kLanes) {
      Vec x = load_filled(logits + i, end - i, -__builtin_inff());
      Vec w = set1(1);
      if constexpr (kWeighted) {
        w = load_filled(weights + i, end - i, 0);  // NaN has weight zero already
      } else {
        x = max(x, set1(-__builtin_inff()));
      }
      for (int t = 0; t < kThresholds; ++t)
        totals[t] = add(totals[t], if_less(x, set1(thresholds[t]), zero(), w));
    }
    for (int t = 0; t < kThresholds; ++t) sums[t] += static_cast<double>(sum(totals[t]));
  }
}

static void sums_from(const float* logits, const float* weights, int64_t count,
                      const float* thresholds, double* sums) {
  if (weights != nullptr) return sums_from_of<true>(logits, weights, count, thresholds, sums);
  sums_from_of<false>(logits, weights, count, thresholds, sums);
}

static float keep_from(const float* logits, float* weights, int64_t count, float threshold) {
  const Vec from = set1(threshold);
  Vec total = zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const Vec x = load_filled(logits + i, count - i, -__builtin_inff());
    const Vec w = if_less(x, from, zero(), load_filled(weights + i, count - i, 0));
    store_upto(weights + i, count - i, w);
    total = add(total, w);
  }
  return sum(total);
}

// Writes first + i for each set bit i of `bits`, in ascending order; returns how many. `out` holds
// at least sixteen.
OCTAVO_INLINE int64_t store_set_bits(uint32_t bits, int32_t first, int32_t* out) {
#ifdef OCTAVO_SIMD_AVX512
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i indices = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), indices));
  return __builtin_popcount(bits);
#else
  int64_t found = 0;
  for (; bits != 0; bits &= bits - 1) out[found++] = first + __builtin_ctz(bits);
  return found;
#endif
}

static int64_t indices_within(const float* logits, int64_t count, LogitRange range, int32_t first,
                              int32_t* out) {
  const Vec from = set1(range.from);
  const Vec to = set1(range.to);
  int64_t found = 0;
  for (int64_t i = 0; i < count; i += kLanes) {
    const Vec x = load_filled(logits + i, count - i, __builtin_nanf(""));
    const uint32_t within = less_bits(x, to) & ~less_bits(x, from);
    found += store_set_bits(within, first + static_cast<int32_t>(i), out + found);
  }
  return found;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
