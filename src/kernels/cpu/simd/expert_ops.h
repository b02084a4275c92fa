// expert_ops.h - the steps of a mixture of experts besides products: scores of experts, and sums of
// their outputs. No MLX.
#pragma once

#include <limits>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/math.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Up to sixteen numbers; the lanes past them are minus infinity.
OCTAVO_INLINE Vec load_logits(const float* from, int64_t count) {
  if (count >= kLanes) return load(from);
  alignas(64) float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i)
    lanes[i] = i < count ? from[i] : -std::numeric_limits<float>::infinity();
  return load(lanes);
}

OCTAVO_INLINE void store_upto16(float* to, int64_t count, Vec v) {
  if (count >= kLanes) return store(to, v);
  store_part(to, DType::kFloat32, 0, count, v);
}

// kSoftmax or kSigmoid of one token's logits; `scores` may be the logits.
static void expert_scores(const float* logits, int64_t count, ExpertScore kind, float* scores) {
  if (kind == ExpertScore::kSigmoid) {
    for (int64_t i = 0; i < count; i += kLanes)
      store_upto16(scores + i, count - i, sigmoid(load_logits(logits + i, count - i)));
    return;
  }
  Vec largest = set1(-std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < count; i += kLanes)
    largest = max(load_logits(logits + i, count - i), largest);
  const Vec top = set1(max_lane(largest));
  Vec total = zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const Vec weight = exp(sub(load_logits(logits + i, count - i), top));
    total = add(total, weight);
    store_upto16(scores + i, count - i, weight);
  }
  const Vec all = set1(sum(total));
  for (int64_t i = 0; i < count; i += kLanes)
    store_upto16(scores + i, count - i, div(load_logits(scores + i, count - i), all));
}

static void add_weighted(float* sums, const float* product, float weight, int64_t count) {
  const Vec w = set1(weight);
  for (int64_t i = 0; i < count; i += kLanes)
    store(sums + i, fma(w, load(product + i), load(sums + i)));
}

static void finish_sums(const ExpertSums& job, int64_t token) {
  const Vec gate = job.shared_gate != nullptr ? sigmoid(set1(job.shared_gate[token])) : set1(1);
  const float* sums = job.sums + token * job.sums_stride;
  for (int64_t i = 0; i < job.count; i += kLanes) {
    const int64_t left = job.count - i;
    const int64_t at = token * job.out_stride + job.out_first + i;
    const auto fetch = [&](const void* base) OCTAVO_INLINE_LAMBDA {
      return left >= kLanes ? load_as(base, job.dtype, at) : load_part(base, job.dtype, at, left);
    };
    Vec v = load(sums + i);
    if (job.shared != nullptr) v = fma(gate, fetch(job.shared), v);
    if (job.residual != nullptr) v = add(fetch(job.residual), v);
    if (left >= kLanes) {
      store_as(job.out, job.dtype, at, v);
    } else {
      store_part(job.out, job.dtype, at, left, v);
    }
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
