// logit_rules.metal - applies masks and a request's rules (bans, bias, penalties) to rows of logits, in the order of
// kernels/types/row_sampling.h and with the CPU's operations (kernels/cpu/logit_rules.cpp).
//
// Grid: x chunks of kRuleTokens tokens, y rows with rules. A threadgroup counts its tokens in the row's history, which it
// reads whole, and writes its chunk of the changed row. Memory: 16 KiB. Limit: bandwidth, 8 bytes per token, and
// the history once per chunk, from the cache.
#include <metal_atomic>

#include "kernels/metal/sampling_params.h"
#include "kernels/metal/shaders/numbers.msl"

using namespace octavo::metal;

// What is known of a token: these bits, and its count in the answer times kOnce.
constant constexpr uint kSeen = 1;
constant constexpr uint kBanned = 2;
constant constexpr uint kBiased = 4;
constant constexpr uint kOnce = 8;

inline bool is_set(const device uint* mask, int token) {
  return (mask[token / 32] >> (token % 32) & 1u) != 0;
}

[[kernel, max_total_threads_per_threadgroup(kRuleThreads)]] void rule_logits(
    const device float* logits [[buffer(0)]],
    const device uint* rules [[buffer(1)]],
    const device int* words [[buffer(2)]],
    const device uint* masks [[buffer(3)]],
    const device int* previous [[buffer(4)]],
    device float* ruled [[buffer(5)]],
    constant SampleParams& params [[buffer(6)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint marks[kRuleTokens];
  threadgroup float biases[kRuleTokens];
  const RowRules rule = ((const device RowRules*)rules)[group.y];
  const int first = int(group.x) * kRuleTokens;
  const int count = min(kRuleTokens, params.vocab - first);
  for (int i = thread_index; i < count; i += kRuleThreads)
    atomic_store_explicit(&marks[i], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int pending = rule.pending >= 0 ? previous[rule.pending] : -1;
  for (int i = thread_index; i < rule.ban_count; i += kRuleThreads) {
    const device int* ban = words + rule.bans + 2 * i;
    const int token = ban[0] - first;
    if (token < 0 || token >= count || (ban[1] >= 0 && ban[1] != pending)) continue;
    atomic_fetch_or_explicit(&marks[token], kBanned, memory_order_relaxed);
  }
  for (int i = thread_index; i < rule.bias_count; i += kRuleThreads) {
    const device int* bias = words + rule.biases + 2 * i;
    const int token = bias[0] - first;
    if (token < 0 || token >= count) continue;
    biases[token] = as_type<float>(bias[1]);
    atomic_fetch_or_explicit(&marks[token], kBiased, memory_order_relaxed);
  }
  const int tokens = rule.history_count + (rule.history >= 0 && pending >= 0 ? 1 : 0);
  for (int i = thread_index; i < tokens; i += kRuleThreads) {
    const int token = (i < rule.history_count ? words[rule.history + i] : pending) - first;
    if (token < 0 || token >= count) continue;
    atomic_fetch_or_explicit(&marks[token], kSeen, memory_order_relaxed);
    if (i >= rule.prompt_count)
      atomic_fetch_add_explicit(&marks[token], kOnce, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const device float* row = logits + ulong(rule.row) * params.vocab;
  device float* out = ruled + ulong(group.y) * params.vocab;
  const int mask_words = (params.vocab + 31) / 32;
  for (int i = thread_index; i < count; i += kRuleThreads) {
    const int token = first + i;
    const uint mark = atomic_load_explicit(&marks[i], memory_order_relaxed);
    float logit = row[token];
    if (rule.mask >= 0 && !is_set(masks + ulong(rule.mask) * mask_words, token))
      logit = -INFINITY;
    if (rule.allowed >= 0 && !is_set((const device uint*)words + rule.allowed, token))
      logit = -INFINITY;
    if ((mark & kBanned) != 0) logit = -INFINITY;
    if ((mark & kBiased) != 0) logit += biases[i];
    if ((mark & kSeen) != 0) {
      logit = logit > 0.0f ? logit / rule.repetition_penalty : logit * rule.repetition_penalty;
      if (mark >= kOnce) {
        logit -= rule.frequency_penalty * float(mark / kOnce);
        logit -= rule.presence_penalty;
      }
    }
    out[token] = logit;
  }
}
