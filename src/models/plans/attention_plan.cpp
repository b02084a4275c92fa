#include "models/plans/attention_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/widen.h"

namespace octavo {

std::string AttentionPlan::describe() const {
  return fmt::format("attention, {} query and {} KV heads of {}{}{}{}", heads, kv_heads, head_dim,
                     window > 0 ? fmt::format(", window {}", window + window_after) : "",
                     output_gate ? ", gated" : "",
                     shares_layer ? ", an earlier layer's cache" : "");
}

uint64_t AttentionPlan::parameters(int hidden) const {
  const uint64_t q = widen(heads) * widen(head_dim);
  const uint64_t kv = widen(kv_heads) * widen(head_dim);
  const uint64_t projected = shares_layer ? 0 : values_are_keys ? kv : 2 * kv;
  uint64_t count = widen(hidden) * (2 * q + projected);
  if (qk_norm) count += norms_rows ? q : widen(head_dim);
  if (qk_norm && !shares_layer) count += norms_rows ? kv : widen(head_dim);
  if (qkv_bias) count += q + projected;
  if (output_bias) count += widen(hidden);
  if (sinks) count += widen(heads);
  if (output_gate) count += widen(hidden) * q + (qkv_bias ? q : 0);
  return count;
}

uint64_t AttentionPlan::row_elements() const {
  // Projected q, k and v, rotated q, and the attention result. A gate adds its projection and the
  // gated result.
  const uint64_t gates = output_gate ? 2 * widen(heads) : 0;
  return (3 * widen(heads) + 2 * widen(kv_heads) + gates) * widen(head_dim);
}

uint64_t AttentionPlan::widest_input(int hidden) const {
  return std::max(widen(hidden), widen(heads) * widen(head_dim));
}

CacheSpec AttentionPlan::cache_spec(DType dtype, KvFormat format) const {
  if (shares_layer) return SharedSpec{*shares_layer};
  return SoftmaxSpec{.kv_heads = kv_heads,
                     .k_dim = head_dim,
                     .v_dim = head_dim,
                     .dtype = dtype,
                     // One step writes and reads a whole prompt of an encoder.
                     .window = window_after > 0 ? 0 : window,
                     .format = format};
}

AttentionPlan AttentionPlan::of_rank(int ranks) const {
  AttentionPlan part = *this;
  if (norms_rows) return part;
  part.kv_heads = (kv_heads + ranks - 1) / ranks;
  part.heads = heads / kv_heads * part.kv_heads;
  return part;
}

}  // namespace octavo
