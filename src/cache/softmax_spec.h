// softmax_spec.h - the cache of a softmax attention layer: K and V of every token, or of a window.
#pragma once

#include <cstdint>

#include "kernels/types/page_geometry.h"

namespace octavo {

struct SoftmaxSpec {
  int kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  DType dtype = DType::kBFloat16;
  int window = 0;  // > 0: only the last `window` tokens are ever read
  KvFormat format = KvFormat::kPlain;
  bool values_in_keys = false;  // page_geometry.h

  bool operator==(const SoftmaxSpec&) const = default;

  PageGeometry geometry(int block_tokens) const {
    return {.block_tokens = block_tokens,
            .kv_heads = kv_heads,
            .k_dim = k_dim,
            .v_dim = v_dim,
            .dtype = dtype,
            .format = format,
            .values_in_keys = values_in_keys};
  }
  size_t bytes_per_token() const { return geometry(8).page_bytes() / 8; }
  // Pages that hold the first `tokens` tokens.
  int pages_for(int tokens, int block_tokens) const {
    return (tokens + block_tokens - 1) / block_tokens;
  }
};

}  // namespace octavo
