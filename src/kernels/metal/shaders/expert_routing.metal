// expert_routing.metal - selects the experts of each token and their weights.
//
// One simdgroup, which is the whole threadgroup, per token; lane l has experts l, l + 32, ...
// Experts are selected one at a time, each by a tree over the best of each lane. The weights are
// summed in the order of expert ids.
// Threadgroup memory: 8 bytes per expert, 4 per group and 8 per selected expert.
// Limit: latency, top_k * 10 shuffles; logits are read once.
#include "kernels/metal/shaders/numbers.msl"
#include "kernels/metal/expert_routing_params.h"

using namespace octavo::metal;

// The values of ExpertScore (expert_choice.h).
constant constexpr int kScoreSoftmax = 0;
constant constexpr int kScoreSigmoid = 1;
constant constexpr int kScoreSoftmaxOfChosen = 2;

constant int kScore [[function_constant(0)]];
constant bool kHasBias [[function_constant(1)]];
constant bool kHasScales [[function_constant(2)]];
constant bool kHasGroups [[function_constant(3)]];
constant bool kBestOfGroup [[function_constant(4)]];  // otherwise the sum of a group's two best
constant bool kRenormalize [[function_constant(5)]];

inline float number_of(float x) { return isnan(x) ? -INFINITY : x; }

// In-place softmax of `count` values; each lane handles its own.
inline void softmax(threadgroup float* numbers, int count, uint lane) {
  float best = -INFINITY;
  for (int i = lane; i < count; i += kSimdWidth) best = max(best, numbers[i]);
  const float largest = lanes_max(best);
  float sum = 0;
  for (int i = lane; i < count; i += kSimdWidth) {
    // The difference of equal infinities is NaN.
    const float below = numbers[i] == largest ? 0.0f : numbers[i] - largest;
    numbers[i] = precise::exp(below);
    sum += numbers[i];
  }
  const float total = lanes_sum(sum);
  for (int i = lane; i < count; i += kSimdWidth) numbers[i] /= total;
}

// Which of the lane's values (bit i: value lane + 32 * i) are among the `wanted` largest; ties go
// to the lower index.
inline uint pick_largest(const threadgroup float* numbers, int count, int wanted, uint lane) {
  uint taken = 0;
  float own_best = 0;
  int own_at = 0;
  bool stale = true;  // the lane's best was selected
  for (int round = 0; round < wanted; ++round) {
    if (stale) {
      own_best = -INFINITY;
      own_at = count;
      for (int at = lane, i = 0; at < count; at += kSimdWidth, ++i) {
        if ((taken >> i & 1) != 0) continue;
        const float number = number_of(numbers[at]);
        if (number > own_best || own_at == count) {
          own_best = number;
          own_at = at;
        }
      }
    }
    float best = own_best;
    int place = own_at;
    for (ushort distance = kSimdWidth / 2; distance > 0; distance /= 2) {
      const float other_best = simd_shuffle_xor(best, distance);
      const int other_place = simd_shuffle_xor(place, distance);
      if (other_best > best || (other_best == best && other_place < place)) {
        best = other_best;
        place = other_place;
      }
    }
    stale = place == own_at;
    if (stale) taken |= 1u << (place / kSimdWidth);
  }
  return taken;
}

// The score of a group: its best value, or the sum of its two best.
inline float group_key(const threadgroup float* numbers, int count) {
  float first = -INFINITY, second = -INFINITY;
  for (int i = 0; i < count; ++i) {
    const float number = numbers[i];
    if (number > first) {
      second = first;
      first = number;
    } else if (number > second) {
      second = number;
    }
  }
  return kBestOfGroup ? first : first + second;
}

[[kernel, max_total_threads_per_threadgroup(32)]] void route_experts(
    const device float* logits [[buffer(0)]],
    const device float* bias [[buffer(1), function_constant(kHasBias)]],
    const device float* expert_scales [[buffer(2), function_constant(kHasScales)]],
    device int* ids [[buffer(3)]],
    device float* weights [[buffer(4)]],
    constant RoutingParams& params [[buffer(5)]],
    threadgroup float* scores [[threadgroup(0)]],
    threadgroup float* keys [[threadgroup(1)]],
    threadgroup float* group_keys [[threadgroup(2)]],
    threadgroup float* chosen [[threadgroup(3)]],
    threadgroup int* picked [[threadgroup(4)]],
    uint token [[threadgroup_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int experts = params.experts;
  const int top_k = params.top_k;
  logits += ulong(token) * experts;
  for (int e = lane; e < experts; e += kSimdWidth) {
    const float logit = number_of(logits[e]);
    scores[e] = kScore == kScoreSigmoid ? sigmoid_of(logit) : logit;
  }
  if (kScore == kScoreSoftmax) softmax(scores, experts, lane);
  for (int e = lane; e < experts; e += kSimdWidth)
    keys[e] = kHasBias ? scores[e] + bias[e] : scores[e];

  if (kHasGroups) {
    const int size = experts / params.groups;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int g = lane; g < params.groups; g += kSimdWidth)
      group_keys[g] = group_key(keys + g * size, size);
    const uint kept = pick_largest(group_keys, params.groups, params.top_groups, lane);
    // Experts of the other groups have score 0.
    for (int g = lane, i = 0; g < params.groups; g += kSimdWidth, ++i) {
      if ((kept >> i & 1) != 0) continue;
      for (int e = g * size; e < (g + 1) * size; ++e) keys[e] = 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  const uint taken = pick_largest(keys, experts, top_k, lane);
  int before = 0;  // selected experts with lower ids
  for (int first = 0, i = 0; first < experts; first += kSimdWidth, ++i) {
    const int is_taken = int(taken >> i & 1);
    const int place = before + simd_prefix_exclusive_sum(is_taken);
    if (is_taken != 0) {
      const int expert = first + int(lane);
      picked[place] = expert;
      chosen[place] = scores[expert];
    }
    before = simd_shuffle(place + is_taken, ushort(kSimdWidth - 1));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (kScore == kScoreSoftmaxOfChosen) {
    softmax(chosen, top_k, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  float total = 1;
  if (kRenormalize) {
    total = 0;
    for (int j = 0; j < top_k; ++j) total += chosen[j];
    total += params.renormalize_eps;
  }
  for (int j = lane; j < top_k; j += kSimdWidth) {
    const int expert = picked[j];
    float weight = (kRenormalize ? chosen[j] / total : chosen[j]) * params.scale;
    if (kHasScales) weight *= expert_scales[expert];
    ids[ulong(token) * top_k + j] = expert;
    weights[ulong(token) * top_k + j] = weight;
  }
}
