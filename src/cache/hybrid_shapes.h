// hybrid_shapes.h - the cache shapes of published hybrid models, and their memory with one page
// size for attention and whole states (as in vLLM). No MLX.
#pragma once

#include <string>
#include <vector>

#include "base/widen.h"
#include "cache/cache_plan.h"

namespace octavo {

struct HybridShape {
  std::string name;
  int layers;
  int kv_heads;     // of attention layers, every fourth
  int value_heads;  // of the others
  int key_heads = 16;
  int head_dim = 256;
  int state_dim = 128;  // of keys and values
  DType dtype = DType::kBFloat16;

  SoftmaxSpec attention() const {
    return {.kv_heads = kv_heads, .k_dim = head_dim, .v_dim = head_dim, .dtype = dtype};
  }
  StateSpec state() const {
    return {.heads = value_heads,
            .k_dim = state_dim,
            .v_dim = state_dim,
            .conv_rows = 3,
            .conv_channels = (2 * key_heads + value_heads) * state_dim,
            .conv_dtype = dtype};
  }
  std::vector<CacheSpec> specs() const {
    std::vector<CacheSpec> specs;
    for (int i = 0; i < layers; ++i) {
      const bool full = i % 4 == 3;
      specs.push_back(full ? CacheSpec(attention()) : CacheSpec(state()));
    }
    return specs;
  }
  size_t attention_layers() const { return widen(layers / 4); }
  size_t state_layers() const { return widen(layers - layers / 4); }

  // Bytes of tokens and states without paging.
  size_t bare_bytes(int tokens) const {
    return attention_layers() * widen(tokens) * attention().bytes_per_token() +
           state_layers() * state().bytes();
  }

  // The attention block if one page must hold a layer's whole state.
  int unified_block() const {
    const size_t tokens = (state().bytes() - 1) / attention().bytes_per_token() + 1;
    return static_cast<int>((tokens + 15) / 16 * 16);
  }
  size_t unified_bytes(int tokens) const {
    const size_t page = widen(unified_block()) * attention().bytes_per_token();
    const size_t blocks = (widen(tokens) - 1) / widen(unified_block()) + 1;
    return page * (attention_layers() * blocks + state_layers());
  }
};

inline const std::vector<HybridShape>& hybrid_shapes() {
  static const std::vector<HybridShape> shapes = {
      {"Qwen3.5-0.8B", 24, 2, 16},      {"Qwen3.5-2B", 24, 2, 16},
      {"Qwen3.5-4B", 32, 4, 32},        {"Qwen3.5-9B", 32, 4, 32},
      {"Qwen3.5-27B", 64, 4, 48},       {"Qwen3.5-35B-A3B", 40, 2, 32},
      {"Qwen3.5-122B-A10B", 48, 2, 64}, {"Qwen3-Next-80B-A3B", 48, 2, 32},
  };
  return shapes;
}

}  // namespace octavo
