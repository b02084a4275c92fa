#include "models/plans/mla_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/widen.h"

namespace octavo {
namespace {

constexpr int kUnit = 16;         // rows packed together; heads must be whole units
constexpr int kWidestRow = 1024;  // the page kernels' limit

int sixteens(const Config& config, const char* key, int value) {
  if (value % kUnit != 0)
    config.fail(key, fmt::format("is {}, not a multiple of {}", value, kUnit));
  return value;
}

}  // namespace

std::string MlaPlan::describe() const {
  return fmt::format("latent attention, {} query heads over rows of {} + {}", heads, kv_rank,
                     rope_dim);
}

uint64_t MlaPlan::parameters(int hidden) const {
  const uint64_t q = widen(heads) * widen(q_dim());
  const uint64_t queries = q_rank > 0 ? widen(q_rank) * (widen(hidden) + 1 + q) : widen(hidden) * q;
  const uint64_t latents = widen(hidden) * widen(latent_dim()) + widen(kv_rank) +
                           widen(kv_rank) * widen(heads) * widen(nope_dim + v_dim);
  const uint64_t biases = bias ? widen(q_rank) + widen(latent_dim()) + widen(hidden) : 0;
  return queries + latents + widen(heads) * widen(v_dim) * widen(hidden) + biases;
}

uint64_t MlaPlan::row_elements() const {
  // The projections; q and the attention result in the latent space, and the values.
  return widen(q_rank) + widen(heads) * widen(q_dim()) + widen(latent_dim()) +
         widen(heads) * widen(latent_dim() + kv_rank + v_dim);
}

uint64_t MlaPlan::widest_input(int hidden) const {
  return std::max(widen(hidden), widen(heads) * widen(std::max({kv_rank, q_dim(), v_dim})));
}

CacheSpec MlaPlan::cache_spec(DType dtype, KvFormat format) const {
  if (format == KvFormat::kInt8) {
    throw SetupError(
        "the int8 KV cache does not support latent attention (MLA); use --kv-cache-dtype auto");
  }
  return SoftmaxSpec{.kv_heads = 1,
                     .k_dim = latent_dim(),
                     .v_dim = kv_rank,
                     .dtype = dtype,
                     .values_in_keys = true};
}

MlaPlan MlaPlan::of_rank(int ranks) const {
  MlaPlan part = *this;
  part.heads = (heads + ranks - 1) / ranks;
  return part;
}

uint64_t MlaPlan::decoded_bytes(DType dtype) const {
  return widen(heads) * widen(kv_rank) * widen(nope_dim) * size_of(dtype);
}

MlaPlan plan_mla(const Config& config, int v_dim) {
  MlaPlan plan;
  plan.heads = config.integer("num_attention_heads", 1, 4096);
  if (config.has("q_lora_rank")) plan.q_rank = config.integer("q_lora_rank", 8, 1 << 16);
  plan.kv_rank = sixteens(config, "kv_lora_rank", config.integer("kv_lora_rank", 16, kWidestRow));
  plan.nope_dim =
      sixteens(config, "qk_nope_head_dim", config.integer("qk_nope_head_dim", 16, kWidestRow));
  plan.rope_dim = config.integer("qk_rope_head_dim", 2, kWidestRow);
  if (plan.rope_dim % 2 != 0 || plan.latent_dim() > kWidestRow) {
    config.fail("qk_rope_head_dim", fmt::format("is {}; it must be even and at most {} with the "
                                                "rank of {}",
                                                plan.rope_dim, kWidestRow, plan.kv_rank));
  }
  plan.v_dim =
      sixteens(config, "v_head_dim", config.integer_or("v_head_dim", v_dim, 16, kWidestRow));
  if (plan.v_dim < kUnit || plan.v_dim > kWidestRow)
    config.fail("v_head_dim", fmt::format("is missing, and its default of {} is outside {} to {}",
                                          plan.v_dim, kUnit, kWidestRow));
  plan.scale = 1 / std::sqrt(static_cast<float>(plan.q_dim()));
  plan.bias = config.boolean_or("attention_bias", false);
  // The latent serves all heads, and the head sizes follow from the other keys.
  config.disregard({"num_key_value_heads", "head_dim", "qk_head_dim"});
  return plan;
}

}  // namespace octavo
